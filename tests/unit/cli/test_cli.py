"""The program as a person runs it: in a process of its own."""

import argparse
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenly.cli import VERBS, main, parser
from evenly.progress import Bar


def evenly(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "EVENLY_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "evenly", *words], capture_output=True, text=True, env=clean | environment, timeout=120
    )


def photos(folder: Path, counts: dict[str, int]) -> Path:
    """A real folder of small pictures, a folder per class."""
    rng = np.random.default_rng(0)
    for name, number in counts.items():
        (folder / name).mkdir(parents=True)
        for i in range(number):
            Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(folder / name / f"{i}.png")
    return folder


def test_help_begins_with_examples_and_names_every_verb() -> None:
    result = evenly("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("examples:\n")
    assert all(re.search(rf"^    {verb}\s", result.stdout, flags=re.MULTILINE) for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("examples:\n")


@pytest.mark.parametrize("verb", VERBS)
def test_no_default_of_an_inner_verb_replaces_what_was_given_before_it(verb: str) -> None:
    (outer,) = (action for action in parser(verb)._actions if isinstance(action, argparse._SubParsersAction))
    given = outer.choices[verb]
    own = {action.dest for action in given._actions}
    for action in given._actions:
        for inner in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            shared = [each for each in inner._actions if each.dest in own]
            assert [each.dest for each in shared if each.default is not argparse.SUPPRESS] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("measure 4e7c --examples 50 rank --json", {"run_id": "4e7c", "what": ["rank"], "examples": 50, "json": True}),
        ("report A --out a.html B", {"run_ids": ["A", "B"], "out": Path("a.html")}),
        ("reproduce KEY --scale smoke KEY2", {"keys": ["KEY", "KEY2"], "scale": "smoke"}),
        ("runs compare A --json B", {"ids": ["A", "B"], "json": True}),
        ("runs --runs C compare A --split test B", {"ids": ["A", "B"], "split": "test", "runs": "C"}),
        ("predict 4e7c --json a.png b.png", {"images": ["a.png", "b.png"]}),
    ],
)
def test_options_may_stand_between_positionals(words: str, told: dict[str, Any]) -> None:
    given = vars(parser(words.split()[0]).parse_args(words.split()))
    assert {name: given[name] for name in told} == told


def test_only_what_is_required_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["measure"])
    assert "the following arguments are required: RUN\n" in capsys.readouterr().err


def test_the_console_script_and_the_module_are_the_same_program() -> None:
    script = Path(sys.executable).parent / "evenly"
    if not script.exists():
        pytest.skip("evenly is not installed beside this Python")
    by_script = subprocess.run([script, "data", "list", "--json"], capture_output=True, text=True)
    assert json.loads(by_script.stdout) == json.loads(
        evenly("data", "list", "--json", **{k: v for k, v in os.environ.items() if k == "EVENLY_DATA"}).stdout
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["dmeo"], "there is no 'dmeo'. Did you mean 'demo'?"),
        (["data", "lst"], "there is no 'lst'. Did you mean 'list'?"),
        (["data", "list", "--jsno"], "Did you mean '--json'"),
        (["data", "show", "cifar11"], "there is no data set 'cifar11'. Did you mean 'cifar10'"),
        (["data", "show", "patches", "--set", "beta=1"], "patches has no option 'beta'"),
        (["data", "show", "patches", "--set", "beta_easy"], "--set 'beta_easy': expected name=value"),
        (["data", "show", "digits", "--per-class", "0"], "give 1 or more"),
        (["data", "show", "digits", "--split", "tset"], "digits has no split 'tset'. Did you mean 'test'"),
        (["data", "show", "digits", "--out", "x.doc"], "cannot draw a .doc file"),
        (["data", "get", "digits"], "digits is embedded: it is always available"),
        ([], "the following arguments are required: VERB"),
        (["--nosuch"], "unrecognized arguments: --nosuch"),
        (["data", "--nosuch"], "unrecognized arguments: --nosuch"),
        (["data", "show", "--classes=2", "--per-clas", "3"], "--per-clas. Did you mean '--per-class'"),
        (["data", "show", "--classes", "2"], "the following arguments are required: NAME"),
        (["useful", "digits", "--factor", "2.5"], "--factor '2.5': expected a whole number."),
        (["train", "digits", "--pace", "often"], "--pace 'often': expected a number."),
        (["train", ""], "there is no data set ''"),
        (["train", "photo"], "given by their path (there is none of this name here): a folder of class folders"),
        (["useful"], "evenly useful digits"),
        (["separate"], "evenly separate digits"),
        (["train"], "evenly train digits"),
        (["reproduce", "zzz"], "The nearest of "),
    ],
)
def test_a_wrong_word_is_answered_with_what_was_meant_and_exit_code_2(
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(words)
    except SystemExit as stop:
        code = int(str(stop.code))
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert complaint in err
    assert list(tmp_path.iterdir()) == [], "nothing half-written may stay"


def test_data_that_are_not_there_say_how_to_get_them_with_exit_code_3(tmp_path: Path) -> None:
    result = evenly("data", "verify", "stl10", EVENLY_DATA=str(tmp_path))
    assert result.returncode == 3
    assert "evenly data get stl10" in result.stderr
    assert str(tmp_path) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_stacked_data_set_names_the_parts_that_are_missing(tmp_path: Path) -> None:
    result = evenly("data", "show", "cifar-mnist", EVENLY_DATA=str(tmp_path))
    assert result.returncode == 3
    assert "evenly data get cifar10 mnist" in result.stderr


def test_a_by_hand_data_set_ends_with_its_instructions(tmp_path: Path) -> None:
    result = evenly("data", "get", "vlcs", EVENLY_DATA=str(tmp_path))
    assert result.returncode == 3
    assert "by hand" in result.stderr
    assert str(tmp_path) in result.stderr


def test_listing_as_json_is_on_stdout_alone_and_complete() -> None:
    result = evenly("data", "list", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert result.stderr == ""
    assert rows["digits"]["here"] is True
    assert rows["patches"]["kind"] == "toy"


def test_show_writes_a_picture_and_will_not_replace_it_unasked(tmp_path: Path) -> None:
    out = tmp_path / "sheet.png"
    shown = evenly("data", "show", "digit-dominoes", "--out", str(out))
    assert shown.stdout == f"{out}\n"
    assert "digit-dominoes, train: 862 examples of 1×16×8 in 2 classes." in shown.stderr
    with Image.open(out) as picture:
        assert picture.size[0] > 300
    again = evenly("data", "show", "digit-dominoes", "--out", str(out))
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert evenly("data", "show", "parity", "--out", str(out), "--force").returncode == 0


def test_a_folder_of_photos_is_verified_and_shown_by_its_path(tmp_path: Path) -> None:
    folder = photos(tmp_path / "photos", {"cat": 3, "dog": 4})
    result = evenly("data", "verify", str(folder), "--json")
    assert result.returncode == 0, result.stderr
    assert [split["examples"] for split in json.loads(result.stdout)["splits"]] == [5, 2]
    assert "photos has no test split: a fifth of every class is held out as test" in result.stderr
    assert f"{folder}: 7 images decoded in 2 splits, no problem found." in result.stderr
    assert evenly("data", "show", str(folder), "--out", str(tmp_path / "s.png")).returncode == 0


def test_a_class_name_that_the_font_lacks_is_drawn_without_a_word(tmp_path: Path) -> None:
    folder = photos(tmp_path / "photos", {"猫": 2, "dog": 2})
    shown = evenly("data", "show", str(folder), "--out", str(tmp_path / "s.png"))
    assert shown.returncode == 0
    assert "Glyph" not in shown.stderr
    assert shown.stderr.count("\n") == 2, shown.stderr  # what is held out, and what is shown


def test_a_folder_without_class_folders_is_told_how_they_would_lie_in_it(tmp_path: Path) -> None:
    folder = photos(tmp_path / "photos", {"cat": 3, "dog": 3}) / "dog"
    assert f"{folder / 'cat' / '1.png'}" in evenly("train", str(folder)).stderr


def test_images_that_do_not_decode_are_all_named_before_training_and_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = photos(tmp_path / "photos" / "train", {"cat": 3, "dog": 3}).parent
    photos(folder / "test", {"cat": 3, "dog": 3})
    (folder / "test" / "dog" / "bad.png").write_bytes(b"not a picture")
    (folder / "train" / "cat" / "cut.png").write_bytes((folder / "train" / "cat" / "1.png").read_bytes()[:60])
    words = ["train", str(folder), "--model", "mlp", "--epochs", "1", "--batch-size", "2", "--device", "cpu"]
    for _ in range(2):  # what was refused once is not remembered as good
        assert main(words) == 3
        told = " ".join(capsys.readouterr().err.split())
        assert "2 images do not decode: train/cat/cut.png" in told
        assert "test/dog/bad.png" in told
        assert "leave them out with --skip-broken" in told
        assert not list(tmp_path.glob("runs/*/recipe.yaml"))
    assert main([*words, "--skip-broken"]) == 0


def test_images_of_another_size_are_all_named_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = photos(tmp_path / "photos", {"cat": 3, "dog": 3})
    for name in ("cat/wide.png", "dog/wide.png"):
        Image.new("RGB", (30, 9)).save(folder / name)
    words = ["train", str(folder), "--model", "mlp", "--epochs", "1", "--batch-size", "2", "--device", "cpu"]
    assert main(words) == 3
    told = " ".join(capsys.readouterr().err.split())
    assert "cat/wide.png (9×30), dog/wide.png (9×30)" in told
    assert not list(tmp_path.glob("runs/*/recipe.yaml"))


def test_a_class_with_one_example_is_a_data_error_that_names_it(tmp_path: Path) -> None:
    result = evenly("data", "verify", str(photos(tmp_path / "photos", {"cat": 3, "dog": 1})))
    assert result.returncode == 3
    assert "dog" in result.stderr


def test_a_broken_image_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    folder = photos(tmp_path / "photos", {"cat": 3, "dog": 3})
    (folder / "cat" / "bad.png").write_bytes(b"not a picture")
    result = evenly("data", "verify", str(folder))
    assert result.returncode == 3
    assert result.stdout == "", "a table of what was not loaded"
    assert "1 image does not decode" in result.stderr
    assert "bad.png (not in an image format that is known)" in result.stderr
    skipped = evenly("data", "verify", str(folder), "--skip-broken")
    assert skipped.returncode == 0, skipped.stderr
    assert "bad.png" in skipped.stderr
    assert "1 broken image" in skipped.stderr


def test_verify_decodes_every_image_and_names_the_first_few_broken_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = photos(tmp_path / "photos", {"cat": 40, "dog": 40})
    for number in (0, 7, 11, 23, 31):
        path = folder / "dog" / f"{number}.png"
        path.write_bytes(path.read_bytes()[:100])
    assert main(["data", "verify", str(folder), "--json"]) == 3
    out, err = capsys.readouterr()
    assert len(json.loads(out)["broken"]) == 5
    assert "5 images do not decode" in err
    assert "and 2 more" in err
    assert "--skip-broken" in err
    assert main(["data", "verify", str(folder), "--set", "skip_broken=true", "--json"]) == 0
    out, err = capsys.readouterr()
    assert sum(split["examples"] for split in json.loads(out)["splits"]) == 75
    assert "5 broken images were left out" in err


def test_one_round_of_verify_names_everything_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = photos(tmp_path / "photos", {"cat": 10, "dog": 10, "lone": 1})
    (folder / "cat" / "bad.png").write_bytes(b"not a picture")
    Image.new("RGB", (9, 5)).save(folder / "dog" / "wide.png")
    shutil.copy(folder / "cat" / "1.png", folder / "dog" / "copy.png")
    assert main(["data", "verify", str(folder)]) == 3
    said = capsys.readouterr().err
    assert "1 image does not decode" in said
    assert "wide.png (5×9)" in said
    assert "the same content as one of another class: 'dog/copy.png is cat/1.png'" in said
    assert "class 'lone' has one training example" in said


def test_verify_says_what_is_held_out_where_copies_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = photos(tmp_path / "photos", {"cat": 10, "dog": 10})
    (folder / "dog" / "bad.png").write_bytes(b"not a picture")
    rows = [f"photos/{kind}/{number}.png,{kind}" for kind in ("cat", "dog") for number in range(10)]
    (tmp_path / "twice.csv").write_text("\n".join(["path,label", *rows, *rows, "photos/dog/bad.png,dog"]) + "\n")
    assert main(["data", "verify", str(tmp_path / "twice.csv"), "--skip-broken"]) == 0
    said = capsys.readouterr().err
    assert "a fifth of every class is held out as test, 4 of 40 examples" in said
    assert "4 further copies are left out of files held out" in said
    assert said.count("broken image was left out") == 1


def test_a_setting_of_the_data_is_spelled_alike_in_every_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = photos(tmp_path / "photos", {"cat": 10, "dog": 10})
    Image.new("RGB", (9, 5)).save(folder / "dog" / "wide.png")
    for setting in ("size=6", "data.options.size=6"):
        assert main(["data", "verify", str(folder), "--set", setting, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["splits"][0]["shape"] == "3×6×6"
        words = ["train", str(folder), "--batch-size", "4", "--set", setting, "--dry-run", "--json"]
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["recipe"]["data"]["options"] == {"size": 6}


def test_verify_decodes_the_images_of_published_sets_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenly.data.fetch.verify.verify", lambda *_, **__: [])  # a small stand-in fails the counts
    for domain in ("art_painting", "cartoon", "photo", "sketch"):
        photos(tmp_path / "PACS" / domain, {"dog": 12, "house": 12})
    (tmp_path / "PACS" / "sketch" / "dog" / "3.png").write_bytes(b"")
    assert main(["data", "verify", "pacs", "--data-root", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 image does not decode" in err
    assert str(Path("sketch", "dog", "3.png")) in err
    assert main(["data", "verify", "pacs", "--data-root", str(tmp_path), "--skip-broken"]) == 0


def test_a_missing_path_is_a_data_error(tmp_path: Path) -> None:
    result = evenly("data", "verify", str(tmp_path / "nothing"))
    assert result.returncode == 3
    assert "does not exist" in result.stderr


def test_doctor_tells_versions_device_and_how_to_get_what_is_missing(tmp_path: Path) -> None:
    result = evenly("doctor", "--json", EVENLY_DATA=str(tmp_path))
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["environment"]["libraries"]["torch"]
    assert report["device"]["kind"] in ("cpu", "cuda", "mps", "xpu")
    found = {row["name"]: row for row in report["data"]}
    assert found["digits"]["found"]
    assert found["cifar10"] == {"name": "cifar10", "found": False, "get": ["evenly data get cifar10"]}
    assert "cifar10" in evenly("doctor", EVENLY_DATA=str(tmp_path)).stdout


@pytest.mark.parametrize("words", ["data list --json", "data list", "data --help"])
def test_a_closed_pipe_is_no_error(words: str) -> None:
    shell = f"{sys.executable} -m evenly {words} | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "BrokenPipe" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_cannot_be_written_is_told_in_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "evenly", "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 4
    assert "cannot write the output: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


def test_real_cifar10_is_verified_file_by_file(published: Callable[[str], Path], tmp_path: Path) -> None:
    root = published("cifar-10-batches-bin")
    assert evenly("data", "verify", "cifar10", EVENLY_DATA=str(root)).returncode == 0
    copy = tmp_path / "cifar-10-batches-bin"
    copy.mkdir()
    for file in (root / "cifar-10-batches-bin").iterdir():
        content = bytearray(file.read_bytes())
        if file.name == "test_batch.bin":
            content[1000] ^= 1
        (copy / file.name).write_bytes(content)
    result = evenly("data", "verify", "cifar10", EVENLY_DATA=str(tmp_path))
    assert result.returncode == 3
    assert "test_batch.bin" in result.stderr


def test_a_log_message_stands_above_the_progress_bar_and_not_inside_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    main(["cite", "nguyen2024"])  # logging is set up before there is a bar
    capsys.readouterr()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Bar("0 of 20 runs done", total=20, unit="runs"):
        logging.getLogger("evenly").warning("seed 0: a class has no clusters")
    line = next(line for line in terminal.getvalue().splitlines() if "no clusters" in line)
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line.rpartition("\x1b[2K")[2]) == (
        "evenly: seed 0: a class has no clusters"
    )
