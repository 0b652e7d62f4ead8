"""Settings of every test. What single tests need lives in `tests/support`, by name, and not here by magic."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.sidecar import FRONT_VARIABLE, FRONTS

# How long an example takes says something about the machine and nothing about the product.
settings.register_profile(
    "recalld",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("recalld")


@pytest.fixture(scope="module", params=FRONTS)
def front(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each front in turn: that of every sidecar which the test runs.

    It stays until the next one, also for tests of the module that do not ask for it: those say `--front`.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(FRONT_VARIABLE, request.param)
        yield request.param
