"""The memory limit: how it is written, where it comes from."""

import os

import pytest

import locpipe as lp
from locpipe.config import Config, _cgroup_limits, granted_memory, parse_bytes
from locpipe.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("2 GiB", 2**31),
        ("2GiB", 2**31),
        ("1.5 gb", 1_500_000_000),
        ("600 MiB", 600 * 2**20),
        ("1e3 MB", 10**9),
        ("1 TiB", 2**40),
        (2**30, 2**30),
        (1e9, 10**9),
        ("4000000 kB", 4 * 10**9),
    ],
)
def test_sizes_are_read(text, n_bytes):
    assert parse_bytes(text) == n_bytes


@pytest.mark.parametrize("size", ["2 GiBs", "much", -1, "", None, True, "1.2.3 GB", float("nan")])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ConfigError, match=r"memory_limit must be a number of bytes or a text"):
        parse_bytes(size)


@pytest.mark.parametrize("size", ["511 MiB", 0, 2**29 - 1])
def test_limits_below_512_mib_are_refused(size):
    with pytest.raises(ConfigError, match=r"memory_limit must be at least 512 MiB, .*, got"):
        Config(memory_limit=size)


def test_the_limit_is_given_or_a_share_of_what_is_granted():
    with lp.config.override(memory_limit="1 GiB") as settings:
        assert settings.memory == settings.memory_limit == 2**30
    assert Config().memory_limit is None
    assert Config().memory == int(0.8 * granted_memory())
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < granted_memory() <= physical


def group(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def limits_of(tmp_path, membership):
    (tmp_path / "cgroup").write_text(membership)
    return sorted(_cgroup_limits(tmp_path / "cgroup", tmp_path / "fs"))


def test_limits_of_control_groups_version_2(tmp_path):
    group(tmp_path / "fs" / "job" / "step", "memory.max", "max\n")
    group(tmp_path / "fs" / "job", "memory.max", "3000\n")
    assert limits_of(tmp_path, "0::/job/step\n") == [3000]


def test_limits_of_control_groups_version_1(tmp_path):
    group(tmp_path / "fs" / "memory" / "job", "memory.limit_in_bytes", "2000\n")
    group(tmp_path / "fs" / "memory", "memory.limit_in_bytes", "9000\n")
    assert limits_of(tmp_path, "4:memory:/job\n3:cpu:/\n0::/\n") == [2000, 9000]


def test_no_control_groups(tmp_path):
    assert list(_cgroup_limits(tmp_path / "none")) == []
    assert limits_of(tmp_path, "0::/seen/from/outside\n") == []


def test_a_limit_that_changes_is_seen(tmp_path):
    for limit in (3000, 2000):
        group(tmp_path / "fs" / "job", "memory.max", f"{limit}\n")
        assert limits_of(tmp_path, "0::/job\n") == [limit]
