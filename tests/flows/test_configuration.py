"""Configuration: YAML, models and command line agree; what is wrong is said in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from locpipe.errors import ConfigError
from locpipe.flows.configuration import configure, load_config, shipped_yaml
from locpipe.flows.models import FLOWS, EmbedCorpus


@pytest.mark.parametrize("flow", FLOWS)
def test_yaml_has_the_keys_and_defaults_of_the_model(flow: str) -> None:
    fields = FLOWS[flow].model_fields
    assert yaml.safe_load(shipped_yaml(flow)) == {
        name: field.default for name, field in fields.items()
    }


@pytest.mark.parametrize("flow", FLOWS)
def test_every_key_is_commented(flow: str) -> None:
    for line in shipped_yaml(flow).splitlines():
        if line and not line.lstrip().startswith("#"):
            assert "#" in line, line


@pytest.mark.parametrize("flow", FLOWS)
def test_shipped_yaml_is_a_config_file(flow: str, tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(shipped_yaml(flow))
    settings = ["input=matrix.npy"] if flow == "amds" else []
    assert load_config(flow, file=file, settings=settings) == configure(
        flow, {"input": "matrix.npy"} if flow == "amds" else {}
    )


def test_defaults_are_those_of_the_methods() -> None:
    import inspect

    from locpipe.corpus.dissimilarity import context_profiles, rank_dissimilarity
    from locpipe.methods.unfolding import unfold

    def defaults(function: Any) -> dict[str, Any]:
        return {k: p.default for k, p in inspect.signature(function).parameters.items()}

    config = EmbedCorpus()
    assert defaults(rank_dissimilarity)["n_near"] == config.n_near
    assert defaults(rank_dissimilarity)["far_weight"] == config.far_weight
    assert defaults(context_profiles)["n_components"] == config.context_dims
    assert defaults(unfold)["max_iter"] == config.max_iter
    assert defaults(unfold)["tol"] == config.tol


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("bandwidth=0.5", "bandwidth", 0.5),
        ("bandwidth=auto", "bandwidth", "auto"),
        ("max_words=50", "max_words", 50),
        ("lowercase=false", "lowercase", False),
        ("input=1984.txt", "input", "1984.txt"),
        ("input=[a.txt, b c.txt]", "input", ["a.txt", "b c.txt"]),
        (
            "stop_words=[no, yes, on, off, null, 007]",
            "stop_words",
            ["no", "yes", "on", "off", "null", "007"],
        ),
        (
            "input=[2024_01, 010, 1:30, 2001-99-99]",
            "input",
            ["2024_01", "010", "1:30", "2001-99-99"],
        ),
        ("input=[]", "input", []),
        ("input=C:/My Data/run 1/*.txt", "input", "C:/My Data/run 1/*.txt"),
        (r"input=\\server\share\text", "input", r"\\server\share\text"),
        ("output=out dir/res.zarr", "output", "out dir/res.zarr"),
        ("n_workers=null", "n_workers", None),
        ("memory_limit=2 GiB", "memory_limit", "2 GiB"),
        ("memory_limit=2000000000", "memory_limit", 2_000_000_000),
        ("dashboard=8787", "dashboard", 8787),
        ("output=a=b.zarr", "output", "a=b.zarr"),
    ],
)
def test_settings_get_their_type(setting: str, key: str, value: object) -> None:
    found = getattr(load_config("embed-corpus", settings=[setting]), key)
    assert found == value
    assert type(found) is type(value)


def test_order_of_sources(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("max_words: 10\nwindow: 3\noutput: file.zarr\n")
    config = load_config(
        "embed-corpus", file=file, settings=["window=4"], options={"output": "option.zarr"}
    )
    assert isinstance(config, EmbedCorpus)
    assert (config.max_words, config.window, config.output) == (10, 4, "option.zarr")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["bandwith=1"], r"Unknown key 'bandwith' \(did you mean 'bandwidth'\?\); embed-corpus"),
        (["foo=1"], "Unknown key 'foo'; embed-corpus knows: .*bandwidth.*input.*window"),
        (
            ["bandwidth=-1"],
            r"bandwidth must be greater than or equal to 0.000000001 or 'auto'; got '-1'\.$",
        ),
        (["bandwidth=0"], "bandwidth must be greater than or equal to 0.000000001"),
        (["bandwidth=1e-300"], "bandwidth must be greater than or equal to 0.000000001"),
        (["bandwidth=1e300"], "bandwidth must be less than or equal to 1000000000"),
        (["n_init=1001"], "n_init must be less than or equal to 1000; got '1001'"),
        (["window=1001"], "window must be less than or equal to 1000; got '1001'"),
        (["bandwidth=nan"], "bandwidth must be a finite number or 'auto'"),
        (["bandwidth=wide"], r"bandwidth must be a valid number or 'auto'; got 'wide'"),
        (["kernel=gausian"], "kernel must be 'gaussian'; got 'gausian'"),
        (["n_near=0"], "n_near must be greater than or equal to 1; got '0'"),
        (["max_words=few"], "max_words must be a valid integer; got 'few'"),
        (["cluster=slurm"], "cluster must be 'threads', 'processes' or 'address'"),
        (["cluster=address"], "address must be set with cluster: address"),
        (["address=tcp://x:1"], "address must be set with cluster: address"),
        (["memory_limit=lots"], "memory_limit must be .* text such as '2 GiB'; got 'lots'"),
        (["if_exists=ask"], "if_exists must be 'default', 'fail', 'resume' or 'replace'"),
        (["max_words"], "must read key=value, and this is 'max_words'"),
        (["input=[a, {]"], r"input must be a list such as \[a.txt, b.txt\]"),
        (["input=[a, [b]]"], r"input must be a list such as \[a.txt, b.txt\]; got '\[a, \[b\]\]'"),
        (["input=[a: b]"], r"input must be a list such as"),
        ([f"input={'[' * 3000}{']' * 3000}"], r"input must be a list such as .{,250}\.\.\.'\.$"),
        (["bandwidth=-1", "window=0"], "bandwidth must .*; window must be"),
    ],
)
def test_bad_setting(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_config("embed-corpus", settings=settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("bandwith: 1", "Unknown key 'bandwith'"),
        ("- a\n- b", "must hold lines `key: value`, and holds a list"),
        ("a: [1", "is no valid YAML at line"),
        ("max_words: many", "max_words must be a valid integer; got 'many'"),
        ("random_state: 2001-99-99", "is no valid YAML: month must be in 1..12"),
        ("window: !!int abc", "is no valid YAML: invalid literal for int"),
        ("input: " + "[" * 3000, "is no valid YAML: it is nested too deeply"),
        ("window: 2\nmax_words: 9\nwindow: 3", "at line 1: the key 'window' is given 2 times"),
        ("a: !!python/object:os.x {}", "at line 1: could not determine a constructor for the tag"),
        (b"\xff\xfe", "cannot be read: it is not UTF-8 text"),
    ],
)
def test_bad_config_file(tmp_path: Path, content: str | bytes, message: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=message):
        load_config("embed-corpus", file=file)


def test_missing_config_file_and_unknown_flow() -> None:
    with pytest.raises(ConfigError, match=r"'no\.yaml' cannot be read: No such file"):
        load_config("embed-corpus", file="no.yaml")
    with pytest.raises(ConfigError, match="There is no flow 'embed'; the flows are: embed-corpus"):
        load_config("embed")
    with pytest.raises(ConfigError, match="input must name a matrix"):
        load_config("amds")


def test_numpy_scalars_are_numbers_and_arrays_are_refused() -> None:
    config = configure("embed-corpus", {"bandwidth": np.float32(0.5), "max_words": np.int64(7)})
    assert isinstance(config, EmbedCorpus)
    assert (config.bandwidth, config.max_words) == (0.5, 7)
    with pytest.raises(ConfigError, match=r"this is an array; write it with numpy\.save or zarr"):
        configure("embed-corpus", {"input": np.ones((3, 3))})


def test_only_what_changes_numbers_is_in_the_fingerprint() -> None:
    numbers = EmbedCorpus().numbers()
    assert {"bandwidth", "window", "random_state", "input"} <= set(numbers)
    assert {"output", "if_exists", "cluster", "n_workers", "dashboard"}.isdisjoint(numbers)
