"""The small web as a program: start and shutdown."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from rove.demo.log import read_log
from rove.demo.profile import CALM
from rove.demo.server import main
from rove.demo.web import SmallWeb

pytestmark = pytest.mark.system


class Program:
    """Run the server as a program."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rove.demo.server", "--profile", "calm", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:")
        self.port = int(line.rpartition(":")[2])

    def ask(self, host: str, path: str) -> int:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        with closing(connection):
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.__exit__(None, None, None)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, None], ids=["term", "int", "eof"])
def test_the_program_stops_and_has_logged_everything(how: signal.Signals | None, tmp_path: Path) -> None:
    log = tmp_path / "log"
    host = SmallWeb(3, 20, CALM).host_name(7)
    options = f"--hosts 20 --seed 3 --stop-at-eof --log {log}"
    with Program(*options.split()) as program:
        for number in range(20):
            assert program.ask(host, f"/none-{number}") == 404
        assert program.process.stdin is not None
        if how is None:
            program.process.stdin.close()
        else:
            program.process.send_signal(how)
        assert program.process.wait(20) == 0
    assert {request.path for request in read_log(log)} == {f"/none-{n}" for n in range(20)}


def test_the_seeds_of_the_web_can_be_written(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    with Program("--hosts", "3", "--seed", "5", "--seeds", str(seeds)):
        names = SmallWeb(5, 3, CALM).seeds()
        assert seeds.read_text() == "".join(f"http://{name}/\n" for name in names)


def test_seeds_that_cannot_be_written_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "/nowhere/seeds.txt"]) == 1
    assert capsys.readouterr().err == "could not write /nowhere/seeds.txt: No such file or directory\n"


def test_an_invalid_setting_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--set", "colour=red"]) == 2
    assert "no setting called 'colour'" in capsys.readouterr().err


def test_a_web_without_hosts_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hosts", "0"]) == 2
    assert "at least one host, not 0" in capsys.readouterr().err


def test_a_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with Program("--hosts", "2") as program:
        assert main(["--port", str(program.port)]) == 1
    assert f"could not listen on port {program.port}" in capsys.readouterr().err
