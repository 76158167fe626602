"""Servers with broken TLS. Most of them are crawled, and their requests are marked."""

from __future__ import annotations

import ssl
import tempfile
import warnings
from pathlib import Path

from tests.zoo.animal import Animal, Fate, linking, says, single, waiting, whole

# For tests only: one key for all, and each certificate is self-signed.
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMw8ftnqCetwr3gV/
0mIPKhCKZ924TRLz1x6m29XXTaOhRANCAATIBm8bN3tsNZ1yoT1oxcp0aeKzcp1Q
wttmcQNH5T1YrvjU/ZQV1KNji2L88s3haoFf8BEqEpSeKmc7LqFmkdBh
-----END PRIVATE KEY-----
"""
EXPIRED = """\
-----BEGIN CERTIFICATE-----
MIIBPzCB5wIUKoVCRsiXwS0DhLYwzgrkEKz8D+cwCgYIKoZIzj0EAwIwIzEhMB8G
A1UEAwwYZXhwaXJlZC1jZXJ0aWZpY2F0ZS50ZXN0MB4XDTAxMDEwMTAwMDAwMFoX
DTAyMDEwMTAwMDAwMFowIzEhMB8GA1UEAwwYZXhwaXJlZC1jZXJ0aWZpY2F0ZS50
ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyAZvGzd7bDWdcqE9aMXKdGni
s3KdUMLbZnEDR+U9WK741P2UFdSjY4ti/PLN4WqBX/ARKhKUnipnOy6hZpHQYTAK
BggqhkjOPQQDAgNHADBEAiAB9GAn60jvckmuIrWG9zDl+tTbR2x3XkNNXZoRkpX9
2gIgTT13WxeGyBcsqTpKrQbEbunMQXMSGuugNr9+VPzOpZc=
-----END CERTIFICATE-----
"""
SELF_SIGNED = """\
-----BEGIN CERTIFICATE-----
MIIBMzCB2QIUYAZPKQbW5qqKpl0nwUQMJiUdBtgwCgYIKoZIzj0EAwIwGzEZMBcG
A1UEAwwQc2VsZi1zaWduZWQudGVzdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEw
MTAwMDAwMFowGzEZMBcGA1UEAwwQc2VsZi1zaWduZWQudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABMgGbxs3e2w1nXKhPWjFynRp4rNynVDC22ZxA0flPViu
+NT9lBXUo2OLYvzyzeFqgV/wESoSlJ4qZzsuoWaR0GEwCgYIKoZIzj0EAwIDSQAw
RgIhANfGQ0zXxH60X0szSZdQWPcnCG2nxDIBmxCrcYaOzCmIAiEA08rETGf4h/q/
+D16/Q/pOl+Mx9VcD6jH4XU02RzNFHI=
-----END CERTIFICATE-----
"""
OF_ANOTHER = """\
-----BEGIN CERTIFICATE-----
MIIBOzCB4wIUXqOGoTBbw9movF9DLkdiYwSUxeIwCgYIKoZIzj0EAwIwIDEeMBwG
A1UEAwwVc29tZWJvZHktZWxzZS5leGFtcGxlMCAXDTIwMDEwMTAwMDAwMFoYDzIx
MjAwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVzb21lYm9keS1lbHNlLmV4YW1wbGUw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATIBm8bN3tsNZ1yoT1oxcp0aeKzcp1Q
wttmcQNH5T1YrvjU/ZQV1KNji2L88s3haoFf8BEqEpSeKmc7LqFmkdBhMAoGCCqG
SM49BAMCA0cAMEQCICyaSmB9SC3hV7p9Ky5LKmHGTM+TxGFUiiNjJblSN5N3AiBy
4el4kyMvdAn6xMosGN8b+bQEaEDt9PlDiAo7HnOFqg==
-----END CERTIFICATE-----
"""


def context(certificate: str) -> ssl.SSLContext:
    """Return a server context with this certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        pem = Path(folder) / "server.pem"
        pem.write_text(KEY + certificate)
        made.load_cert_chain(pem)
    return made


def tls_1_0() -> ssl.SSLContext:
    """Return the context of a server that speaks nothing newer than TLS 1.0."""
    made = context(SELF_SIGNED)
    made.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made.minimum_version = ssl.TLSVersion.TLSv1
        made.maximum_version = ssl.TLSVersion.TLSv1
    return made


def animals() -> list[Animal]:
    """Return all animals of this kind."""
    answer = says(whole(linking("a page behind TLS", ())))
    doubted = Fate("done", "", "tls-*")
    return [
        single(
            "expired-certificate",
            "a certificate of 2001",
            answer,
            doubted,
            scheme="https",
            tls=context(EXPIRED),
        ),
        single(
            "self-signed",
            "a self-signed certificate",
            answer,
            doubted,
            scheme="https",
            tls=context(SELF_SIGNED),
        ),
        single(
            "wrong-host",
            "a certificate of another host",
            answer,
            doubted,
            scheme="https",
            tls=context(OF_ANOTHER),
        ),
        single(
            "tls-1-0",
            "speaks only TLS 1.0",
            answer,
            doubted,
            waiting("tls"),
            scheme="https",
            tls=tls_1_0(),
        ),
        single(
            "plain-at-https",
            "plain text where TLS is expected",
            answer,
            waiting("tls"),
            scheme="https",
        ),
        single(
            "tls-at-http",
            "TLS where plain text is expected",
            answer,
            waiting("reset"),
            waiting("protocol"),
            tls=context(SELF_SIGNED),
        ),
    ]
