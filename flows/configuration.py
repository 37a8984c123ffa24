"""From a YAML file and `key=value` settings to a checked configuration, or one clear sentence."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from locpipe.errors import ConfigError
from locpipe.flows.models import FLOWS, RunSettings

__all__ = ["configure", "flow_model", "load_config", "shipped_yaml"]

SHOWN: Final = 200  # characters of a wrong value


def flow_model(flow: str) -> type[RunSettings]:
    """Return the settings model of a flow.

    Raises
    ------
    ConfigError
        If there is no such flow; the message lists those that there are.
    """
    if flow not in FLOWS:
        raise ConfigError(f"There is no flow {flow!r}; the flows are: {', '.join(FLOWS)}.")
    return FLOWS[flow]


def shipped_yaml(flow: str) -> str:
    """Return the commented configuration that ships with locpipe, as text.

    Raises
    ------
    ConfigError
        If there is no such flow.
    """
    flow_model(flow)
    return (resources.files("locpipe") / "configs" / f"{flow}.yaml").read_text(encoding="utf-8")


def load_config(
    flow: str,
    *,
    file: str | Path | None = None,
    settings: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> RunSettings:
    """Read a flow's configuration: file, then ``key=value`` settings, then options.

    Parameters
    ----------
    flow
        Name of the flow.
    file
        YAML file; keys that it leaves out keep their default.
    settings
        Texts such as ``"bandwidth=0.02"`` or ``"input=[a.txt, b.txt]"``.
    options
        Values that outrank both.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a key is unknown, has a wrong type or is out of range.

    Examples
    --------
    >>> load_config("embed-corpus", settings=["max_words=50", "input=[a.txt, b.txt]"]).input
    ['a.txt', 'b.txt']
    """
    values = _read_yaml(Path(file)) if file is not None else {}
    values.update(_parse_setting(text, flow_model(flow)) for text in settings)
    return configure(flow, values | dict(options or {}))


def configure(flow: str, values: Mapping[str, Any]) -> RunSettings:
    """Check values against a flow's model.

    Raises
    ------
    ConfigError
        One sentence for all that is wrong; it names the allowed keys, types and ranges.
    """
    model = flow_model(flow)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_sentence(error, model)) from None


class _UniqueKeys(yaml.SafeLoader):
    """Plain data; a key that is given twice is an error, not the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                problem = f"the key {key.value!r} is given {keys.count(key.value)} times"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        return super().construct_mapping(node, deep)


# What PyYAML raises: some values, such as 2001-99-99, fail in Python's own constructors.
_UNREADABLE: Final = (yaml.YAMLError, ValueError, RecursionError)


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(getattr(error, "problem", None) or " ".join(str(error).split())).rstrip(".")


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        values = yaml.load(file.read_text(encoding="utf-8"), _UniqueKeys)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"The config file {str(file)!r} cannot be read: {reason}.") from error
    except _UNREADABLE as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where else ""
        raise ConfigError(
            f"The config file {str(file)!r} is no valid YAML{line}: {_problem(error)}."
        ) from error
    if not isinstance(values, dict | None):
        raise ConfigError(
            f"The config file {str(file)!r} must hold lines `key: value`, and holds a"
            f" {type(values).__name__}."
        )
    return {str(key): value for key, value in (values or {}).items()}


def _parse_setting(text: str, model: type[RunSettings]) -> tuple[str, Any]:
    """Split ``key=value``; the model gives text its type, so only lists and null are read here."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"A setting must read key=value, and this is {text!r}.")
    key, value = key.strip(), value.strip()
    if key not in model.model_fields:
        raise ConfigError(_unknown([key], model))
    if value.startswith("[") and value.endswith("]"):
        return key, _parse_list(key, value)
    return key, None if value in ("null", "None") else value


def _parse_list(key: str, value: str) -> Any:
    try:
        items = yaml.load(value, yaml.BaseLoader)  # no and 007 are text
    except _UNREADABLE:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        shown = value if len(value) <= SHOWN else f"{value[:SHOWN]}..."
        raise ConfigError(f"{key} must be a list such as [a.txt, b.txt]; got {shown!r}.")
    return items


def _sentence(error: ValidationError, model: type[RunSettings]) -> str:
    problems = error.errors(include_url=False)
    unknown = [str(p["loc"][0]) for p in problems if p["type"] == "extra_forbidden"]
    if unknown:
        return _unknown(unknown, model)
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for problem in problems:
        by_key.setdefault(str(problem["loc"][0]) if problem["loc"] else "", []).append(problem)
    return "; ".join(_explain(key, found) for key, found in by_key.items()) + "."


def _explain(key: str, problems: Sequence[Mapping[str, Any]]) -> str:
    """Say what one key must be; a key of several types has a problem for each."""
    if "error" in (context := problems[0].get("ctx", {})):
        return str(context["error"]).rstrip(".")
    if problems[0]["type"] == "missing":
        return f"{key} must be given"
    wanted = dict.fromkeys(_wanted(problem) for problem in problems)
    return f"{key} must be {' or '.join(wanted)}; got {problems[0]['input']!r}"


def _wanted(problem: Mapping[str, Any]) -> str:
    """Turn pydantic's "Input should be greater than 0" into "greater than 0"."""
    text = str(problem["msg"]).removeprefix("Input should be ").split(", unable")[0]
    return "text such as '2 GiB'" if problem["type"] == "string_pattern_mismatch" else text


def _unknown(keys: Iterable[str], model: type[RunSettings]) -> str:
    named = ", ".join(map(repr, keys))
    close = difflib.get_close_matches(next(iter(keys)), model.model_fields, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"Unknown key {named}{hint}; {model.flow} knows: {', '.join(model.model_fields)}."
