"""What all tests share: quiet services, hypothesis profiles, a novel, no quiet skips in CI."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports distributed or prefect: quiet, offline, and not the user's own server.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("PREFECT_API_URL", None)

# Other processes share the machine with the tests, so a deadline would only measure them.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=25, **_common)
settings.register_profile("ci", max_examples=200, derandomize=True, **_common)
settings.load_profile(os.environ.get("LOCPIPE_TEST_PROFILE", "dev"))

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repo() -> Path:
    """Return the root of the repository."""
    return REPO


@pytest.fixture(scope="session")
def oliver_twist() -> Path:
    """Return the path of a whole novel; it lies beside the repository, not in it."""
    path = REPO.parent / "shared" / "data" / "oliver_twist.txt"
    if not path.exists():
        pytest.skip("the novel ../shared/data/oliver_twist.txt is not here")
    return path


@pytest.fixture(scope="session")
def prefect_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache for embedded Prefect servers: the first one migrates the database for all."""
    return tmp_path_factory.mktemp("prefect-cache")


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport, *, exempt: bool) -> None:
    """Turn a skip into a failure where LOCPIPE_REQUIRE_ALL says that every real part is here."""
    if os.environ.get("LOCPIPE_REQUIRE_ALL") != "1" or exempt or not report.skipped:
        return
    if not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although LOCPIPE_REQUIRE_ALL=1: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail tests that skip in CI; only those that need a GPU may."""
    report = yield
    _forbid_skip(report, exempt=item.get_closest_marker("gpu") is not None)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Fail modules that skip as a whole in CI; only those under tests/gpu may."""
    report = yield
    _forbid_skip(report, exempt="gpu" in Path(str(collector.path)).parts)
    return report
