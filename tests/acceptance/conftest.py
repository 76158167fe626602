from collections.abc import Iterator

import pytest

from tests.acceptance.scenarios import Outcomes


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Start the selected scenarios of this file (see scenarios.py)."""
    names = [
        item.callspec.params["scenario"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and "outcomes" in item.fixturenames
    ]
    folder = tmp_path_factory.mktemp("scenarios")
    with request.module.scenario.running(names, folder) as outcomes:
        yield outcomes
