"""Models from elsewhere: timm's and torchvision's by name, if installed, and the user's own functions."""

import contextlib
import difflib
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn

from evenly.errors import DataError, EvenlyError, SetupError, UsageError, did_you_mean
from evenly.models.weights import fill

_FETCHING = ("huggingface_hub", "requests", "httpx", "httpx2", "httpcore", "httpcore2", "urllib3", "urllib")
# Options that have a library fetch or read weights.
_OF_WEIGHTS = {"timm": ("pretrained", "checkpoint_path"), "torchvision": ("weights",)}
EXTRAS = {"timm": "timm", "torchvision": "vision"}


def foreign(name: str, input_shape: tuple[int, ...], num_classes: int, options: Mapping[str, Any]) -> nn.Module:
    """The model that `timm:NAME`, `torchvision:NAME` or `module:function` names.

    >>> foreign("torch.nn:Linear", (4,), 3, {"in_features": 4, "out_features": 3})
    Linear(in_features=4, out_features=3, bias=True)
    >>> foreign("torch.nn:Linaer", (4,), 3, {})
    Traceback (most recent call last):
    evenly.errors.UsageError: the module torch.nn has nothing called 'Linaer'. Did you mean 'Linear' or ...
    """
    source, _, inner = name.partition(":")
    if not source or not inner:
        raise UsageError(f"model {name!r}: expected timm:NAME, torchvision:NAME or module:function.")
    if source == "timm":
        return _timm(name, inner, input_shape, num_classes, options)
    if source == "torchvision":
        return _torchvision(name, inner, num_classes, options)
    return _users(name, source, inner, {"input_shape": input_shape, "num_classes": num_classes}, options)


def without_fetching(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options but for those that fetch weights: a network that is filled with its own afterwards needs none.

    >>> without_fetching("timm:resnet18", {"pretrained": True, "drop_rate": 0.1})
    {'drop_rate': 0.1}
    """
    library, colon, _ = name.partition(":")
    left_out = _OF_WEIGHTS.get(library, ()) if colon else ()
    return {option: value for option, value in options.items() if option not in left_out}


def _timm(
    name: str, inner: str, input_shape: tuple[int, ...], num_classes: int, options: Mapping[str, Any]
) -> nn.Module:
    if inner.startswith(("hf-hub:", "hf_hub:")):
        known = inner.rpartition("/")[2]
        raise UsageError(
            f"model {name!r}: timm's models are given by their own names, and their published weights by an option: "
            f"--model timm:{known} --set model.options.pretrained=true."
        )
    timm = _library("timm", name)
    if not timm.is_model(inner):
        raise UsageError(f"timm has no model {inner!r}.{_near(inner, timm.list_models())}")
    if (file := options.get("checkpoint_path")) and not os.path.isfile(file):
        raise DataError(f"there is no weights file {file}, which checkpoint_path names.")
    given = {"pretrained": False, "num_classes": num_classes, "in_chans": input_shape[0], **options}
    return _call_maker(name, lambda: timm.create_model(inner, **given))


def _torchvision(name: str, inner: str, num_classes: int, options: Mapping[str, Any]) -> nn.Module:
    models = _library("torchvision", name).models
    names = models.list_models(module=models)
    if inner not in names:
        raise UsageError(f"torchvision has no classification model {inner!r}.{_near(inner, names)}")
    given = {"num_classes": num_classes, **options, "weights": None}
    published = _published_weights(models, inner, options.get("weights"))
    model = _call_maker(name, lambda: models.get_model(inner, **given))
    if published is not None:
        # torchvision itself refuses weights for other than their own classes: all but the head is filled.
        weights = _fetch(name, lambda: published.get_state_dict(progress=False, check_hash=True))
        fill(model, weights, source=str(published))
    return model


def _published_weights(models: Any, inner: str, weights: Any) -> Any:
    """The weights that torchvision publishes for a model under a name, such as DEFAULT or IMAGENET1K_V1."""
    if weights is None:
        return None
    known = models.get_model_weights(inner).__members__
    short = str(weights).rpartition(".")[2]
    if short not in known:
        raise UsageError(
            f"torchvision has no weights {weights!r} of {inner}. {did_you_mean(short, known)} A file of weights goes "
            "to model.weights."
        )
    return known[short]


def _call_maker(name: str, make: Callable[[], nn.Module]) -> nn.Module:
    """The result of `make`; an argument that it does not take raises a `UsageError` with the library's message."""
    try:
        model: nn.Module = _fetch(name, make)
        return model
    except SetupError:
        raise
    except (TypeError, ValueError, AssertionError, RuntimeError) as error:
        raise UsageError(f"{name} could not be made with these options: {error}") from error


def _fetch(name: str, fetch: Callable[[], Any]) -> Any:
    """The result of `fetch`, which may download weights; a failed download raises a `SetupError` in words."""
    hub = logging.getLogger("huggingface_hub")
    before = hub.level
    hub.setLevel(logging.ERROR)  # its remarks on every attempt say no more than the error at the end
    try:
        return fetch()
    except Exception as error:  # libraries wrap network failures in classes of their own
        if not _is_from_network(error):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].partition(". ")[0].rstrip(".")
        raise SetupError(
            f"the published weights of {name} are not on this machine and could not be fetched: {reason:.200}. "
            "Connect to the internet and repeat the command once, give a file of weights (--set "
            "model.weights=FILE), or leave the option out to start from random weights."
        ) from error
    finally:
        hub.setLevel(before)


def _is_from_network(error: BaseException) -> bool:
    """Whether an error comes from fetching a file: an operating system error, or one of a library that downloads."""
    seen: BaseException | None = error
    while seen is not None:
        library = type(seen).__module__.partition(".")[0]
        if isinstance(seen, OSError) or library in _FETCHING:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _near(name: str, known: list[str]) -> str:
    """A hint only if some name is close: these libraries have too many names to list."""
    near = difflib.get_close_matches(name, known, n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _library(library: str, name: str) -> Any:
    loaded = set(sys.modules)
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name == library:
            raise SetupError(
                f'{name} needs {library}, which is not installed. Install it: pip install "evenly[{EXTRAS[library]}]"'
            ) from None
        raise SetupError(
            f"{name} needs {library}, which is installed but imports {error.name!r}, which is not. Install that too."
        ) from error
    except Exception as error:  # a broken installation raises anything
        # A half-imported module must not make the next attempt fail with another error.
        for half in [key for key in set(sys.modules) - loaded if key.partition(".")[0] in EXTRAS]:
            del sys.modules[half]
        raise _setup_error(library, name, error) from error


def _setup_error(library: str, name: str, error: Exception) -> SetupError:
    reason = str(error).splitlines()[0].rstrip(".")
    culprit = "torchvision" if "torchvision" in reason else library
    return SetupError(
        f"{name} needs {library}, which is installed but cannot be imported: {reason}. The build of {culprit} does "
        f"not fit torch {torch.__version__}: install both from one source, pip install --force-reinstall torch "
        f"{culprit}. evenly's own models, such as resnet18, do without."
    )


def _users(
    name: str, module_name: str, function_name: str, facts: Mapping[str, Any], options: Mapping[str, Any]
) -> nn.Module:
    function = _function(_module(module_name, name), module_name, function_name)
    given = _arguments(name, function, facts, options)
    try:
        model = function(**given)
    except EvenlyError:
        raise
    except Exception as error:  # code of the user's
        raise UsageError(
            f"{name} failed when called with {_call(given)}: {type(error).__name__}: {error}. "
            "A function for a model takes input_shape and num_classes by name and returns a torch.nn.Module."
        ) from error
    if not isinstance(model, nn.Module):
        raise UsageError(f"{name} returned a {type(model).__name__}, not a torch.nn.Module. Return the model itself.")
    return model


def _call(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in given.items()) or "no arguments"


def _module(module_name: str, name: str) -> ModuleType:
    try:
        with _current_folder_last():
            return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise UsageError(
                f"model {name!r}: there is no module {error.name!r} in {os.getcwd()} or among the installed packages. "
                f"{_hint(module_name)}"
            ) from None
        raise UsageError(
            f"model {name!r}: {module_name} was found, but it imports {error.name!r}, which is not installed."
        ) from error
    except Exception as error:  # code of the user's
        raise UsageError(
            f"model {name!r}: {module_name} was found, but importing it failed: {type(error).__name__}: {error}"
        ) from error


def _hint(module_name: str) -> str:
    if module_name in ("hf", "hf-hub", "hf_hub", "huggingface", "transformers"):
        return (
            "Models of the Hugging Face Hub are given by the names that timm has for them, with the option that "
            "fetches their weights: --model timm:NAME --set model.options.pretrained=true. Others need a "
            "module:function of your own."
        )
    return "A model of your own is given as module:function; evenly's own are in the catalogue without a colon."


@contextlib.contextmanager
def _current_folder_last() -> Iterator[None]:
    """Add the current folder, which console scripts do not search; last, so that it can shadow no package."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(here)]


def _function(module: ModuleType, module_name: str, function_name: str) -> Callable[..., Any]:
    target = getattr(module, function_name, None)
    if callable(target):
        return cast(Callable[..., Any], target)
    public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    problem = "has nothing called" if target is None else "has no function but a value called"
    raise UsageError(f"the module {module_name} {problem} {function_name!r}. {did_you_mean(function_name, public)}")


def _arguments(
    name: str, function: Callable[..., Any], facts: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The facts that the function has parameters for, and all options, each of which it must accept."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions in C do not say what they take
        return {**facts, **options}
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return {**facts, **options}
    takes = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for option in options:
        if option not in takes:
            raise UsageError(f"{name} has no option {option!r}. {did_you_mean(option, set(takes) - set(facts))}")
    given = {key: value for key, value in facts.items() if key in takes} | dict(options)
    lacking = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    lacking = [key for key in lacking if key not in given]
    if lacking:
        raise UsageError(
            f"{name} asks for {', '.join(map(repr, lacking))}, which was not given. It gets input_shape and "
            f"num_classes by name; give the rest as options, such as {lacking[0]}=…"
        )
    return given
