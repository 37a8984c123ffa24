"""Every benchmark against peers runs at tiny size, whatever peers are installed."""

import importlib
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

# Peers may warn of what they like when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore")
PEERS = (
    ("peer_torch", "gaussian_mean"),
    ("peer_keops", "gaussian_mean"),
    ("peer_densities", "kdepy"),
)


@pytest.fixture
def benchmark(repo: Path, monkeypatch: pytest.MonkeyPatch):
    """Give a benchmark by name, as a run of its file would see it."""
    monkeypatch.syspath_prepend(repo / "benchmarks")
    return importlib.import_module


def rows(text: str) -> list[list[str]]:
    """Cells of every line of every table."""
    lines = (line for line in text.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_attention(benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--only", "16,16", "--n", "300", "--rounds", "1", "--keops-up-to", "0"]
    benchmark("attention").main([*shape, "--engine", "dense"])
    head, _, dense, auto = rows(capsys.readouterr().out)
    assert float(dense[head.index("error")]) < 1e-6
    assert float(dense[head.index("of ceiling")]) > 0
    assert auto[head.index("engine")].startswith("auto: ")


def test_scotts_bandwidth_has_lines_of_its_own(benchmark, capsys) -> None:
    shape = ["--only", "64,1", "--n", "100", "--rounds", "1"]
    benchmark("attention").main([*shape, "--engine", "dense"])
    table = rows(capsys.readouterr().out)
    assert [row[3] for row in table[2:]] == ["0.3 sqrt(d)"] * 2 + ["Scott"] * 2


def test_peers_that_are_not_there_are_said_to_be_missing(
    benchmark, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_):
        raise ImportError("no such peer")

    for module, name in PEERS:
        monkeypatch.setattr(benchmark(module), name, missing)
    shape = ["--only", "2,1", "--n", "100", "--rounds", "1", "--engine", "dense"]
    benchmark("attention").main(shape)
    head, _, dense, _ = rows(capsys.readouterr().out)
    assert dense[head.index("torch by ours")] == "not installed"
    assert dense[head.index("KeOps by ours")] == "not installed"
    benchmark("density").main(["--n", "100", "--rounds", "1", "--engine", "dense"])
    assert "not installed" in capsys.readouterr().out


def test_density(benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--n", "300", "--cells", "128", "--rounds", "1"]
    benchmark("density").main([*size, "--engine", "dense"])
    lines = {row[0]: row for row in rows(capsys.readouterr().out)}
    assert float(lines["ours"][3]) < 1e-6
    assert float(lines["scikit-learn, rtol 1e-6"][3]) < 1e-5


def test_spectral(benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--n", "400", "--rounds", "1", "--off", "5", "--large"]
    benchmark("spectral").main([*size, "--engine", "dense"])
    lines = {row[0]: row for row in rows(capsys.readouterr().out)}
    for kind in ("random", "least mass", "off the data"):
        assert max(map(float, lines[kind][3:])) < 1e-6
    assert lines["off the data"][1] == "5"
    assert float(lines["4,000"][2]) > 0


def test_pruned(benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    engines = ["--engine", "dense", "--peer", "dense"]
    benchmark("pruned").main(["--n", "500", "--rounds", "1", *engines])
    lines = rows(capsys.readouterr().out)[2:]
    assert [line[0] for line in lines] == ["Gaussian", "Epanechnikov"]
    assert max(float(line[5]) for line in lines) < 1e-6


def test_neighbours(benchmark, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    module = benchmark("neighbours")
    pixels = np.random.default_rng(0).integers(0, 3, (200, 784)).astype(np.float32)
    monkeypatch.setattr(module, "PICTURES", Path(__file__))
    monkeypatch.setattr(module, "pictures", lambda n: pixels[:n])
    size = ["--queries", "30", "--keys", "200", "--k", "5", "--rounds", "1"]
    module.main([*size, "--engine", "dense"])
    lines = {row[0]: row for row in rows(capsys.readouterr().out)}
    assert float(lines["ours"][3]) == 0
    true = benchmark("oracle").neighbours(pixels[:9], pixels, 5)
    np.testing.assert_array_equal(module.true_neighbours(pixels[:9], pixels, 5), true)


def test_pictures_that_are_not_there(
    benchmark, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    module = benchmark("neighbours")
    monkeypatch.setattr(module, "PICTURES", tmp_path / "none.gz")
    module.main([])
    assert "apt-get install dataset-fashion-mnist" in capsys.readouterr().out


def test_on_dask(benchmark, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    module = benchmark("on_dask")

    def threads(kind, *run):  # processes have tests of their own
        return on_cluster("threads", *run)

    on_cluster = module.on_cluster
    monkeypatch.setattr(module, "on_cluster", threads)
    size = ["--keys", "300", "--seconds", "0.05", "--chunks", "3"]
    module.main([*size, "--engine", "dense"])
    lines = {row[0]: row for row in rows(capsys.readouterr().out)}
    assert float(lines["Dask, threads"][3]) < 1e-6
    assert float(lines["cluster, processes"][3]) < 1e-6


@pytest.fixture
def scale(benchmark, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Growth of the reference engine, in this process."""
    module = benchmark("scale")
    monkeypatch.setattr(module, "CURVES", (module.Curve("dense", 2, 10**7),))
    monkeypatch.setattr(module, "SIZES", (100, 200, 400))
    monkeypatch.setattr(module, "LONG", 0.0)
    monkeypatch.setattr(module, "apart", module.alone)
    return module


def test_scale(scale: ModuleType, capsys, tmp_path: Path) -> None:
    scale.main(["--picture", str(tmp_path / "growth.png")])
    table = rows(capsys.readouterr().out)
    assert [row[1] for row in table[2:5]] == ["100", "200", "400"]
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_exponents(scale: ModuleType) -> None:
    points = [scale.Point(n, 1e-9 * n**2, 3.0, 1.0, "dense") for n in (10, 100, 1000)]
    assert math.isclose(scale.exponent(points, "seconds"), 2)
    assert abs(scale.exponent(points, "peak")) < 1e-12


def test_a_section_of_the_page_is_written(benchmark, monkeypatch, tmp_path: Path) -> None:
    module = benchmark("page")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\n")
    monkeypatch.setattr(module, "PAGE", page)
    monkeypatch.setattr(module, "measured", lambda name: f"| {name} \\1 |\n")
    module.main(["two"])
    text = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\n| two \\1 |\n<!-- end -->\n"
    assert page.read_text() == text
    with pytest.raises(SystemExit, match="three"):
        module.main(["three"])


def test_every_section_of_the_page_has_a_benchmark(benchmark, repo: Path) -> None:
    module = benchmark("page")
    names = [found["name"] for found in module.SECTION.finditer(module.PAGE.read_text())]
    assert names
    assert all((repo / "benchmarks" / f"{name}.py").exists() for name in names)
