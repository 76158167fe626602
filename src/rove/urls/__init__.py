"""URLs: canonical form, domain, origin, fingerprint, ignored parameters, seeds."""
