"""The site of the claims: every experiment has a page, in its own folder, from the ledger alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.errors import DataError, UsageError
from evenly.report.claim_page import experiment_page
from evenly.report.claims_site import write_site
from evenly.report.verdict_tables import markdown, results

PAPERS = {"nguyen2024": ("Nguyen et al. (2024)", "Dang Nguyen and others: USEFUL.")}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


def claim(**more: Any) -> dict[str, Any]:
    number = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 3, "level": 0.95}
    return {
        "name": "gap", "says": "SAM <b>is</b> | even", "direction": "less", "value": "sam", "against": "gd",
        "ours": number, "ours_against": number | {"mean": 0.9}, "difference": number | {"mean": -0.4},
        "paper": 0.3, "paper_against": 0.7, "margin": 0.1, "effect": -0.4, "same_level": True,
        "verdict": "reproduced", "seeds_needed": None, "primary": True, "corrects": False,
        "after": False, "note": "A note", "values": {"0": 0.5}, "references": {"0": 0.9},
    } | more  # fmt: skip


def row(**more: Any) -> dict[str, Any]:
    return {
        "key": "nguyen2024/fig2", "title": "Alignment", "claim": "SAM is even.", "scale": "full",
        "kind": "paper", "verdict": "reproduced", "claims": [claim()], "seeds": [0, 1, 2], "levels": True,
        "deviations": ["40 seeds"], "errata": ["Equation 1 has no bias."],
        "quantities": {"sam": {"0": 0.5, "1": 0.4}, "gd": {"0": 0.9, "1": 0.8}, "other": {"0": 1.0}},
        "digest": "0", "parts": {"a": "c0ffee"}, "command": "evenly reproduce nguyen2024/fig2 --scale full",
        "minutes": 3.0, "version": "0.1.0", "date": "2026-01-01",
        "machine": {"cpu": "a", "usable_cpus": 2, "machine": "x", "python": "3", "libraries": {"torch": "2"}},
        "figure": "nguyen2024-fig2-full.svg", "drawn": [0, 1, 2],
        "origins": {seed: {"revision": "abc", "cpu": "a", "date": "2026-01-01"} for seed in "012"},
    } | more  # fmt: skip


def line(**more: Any) -> dict[str, Any]:
    return {"key": "nguyen2024/fig2", "claim": "SAM is even.", "scale": "full", "kind": "paper", "state": "done",
            "verdict": "reproduced", "cost": 3.0} | more  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "nguyen2024-fig2-full.svg").write_text(SVG)
    return folder


def test_the_first_page_leads_to_every_experiment_and_back(ledger: Path, tmp_path: Path):
    lines = [line(), line(key="nguyen2024/fig9", state="not run", verdict="not run")]
    first = write_site(tmp_path / "site", lines, [row()], ledger=ledger, papers=PAPERS)
    links = set(re.findall(r'href="([^"#:]+\.html)"', first.read_text()))
    assert links == {"nguyen2024-fig2.html", "nguyen2024-fig9.html"}
    for page in links:
        assert 'href="index.html"' in (tmp_path / "site" / page).read_text()
    assert "not run" in first.read_text()


def test_an_experiment_with_two_lines_has_one_page_that_leads_with_what_was_run(ledger: Path, tmp_path: Path):
    seen = line(scale="small", kind="stand-in")
    (ledger / "nguyen2024-fig2-small.svg").write_text(SVG)
    lines = [seen, line(state="not run", verdict="not run")]
    own = row(scale="small", kind="stand-in")
    first = write_site(tmp_path / "site", lines, [own], ledger=ledger, papers=PAPERS)
    assert "1 experiment, judged" in first.read_text()
    page = (tmp_path / "site" / "nguyen2024-fig2.html").read_text()
    assert "seen in a stand-in" in page
    assert "run it again" in page


def test_a_remark_counts_its_own_statements_and_not_those_that_it_corrects():
    claims = [claim(verdict="contradicted"), claim(name="ours", corrects=True), claim(name="too", corrects=True)]
    remark = row(kind="remark", claims=claims)
    assert "| holds (2 of 2 claims hold) |" in markdown([line(kind="remark")], [remark])
    assert results([remark], ["nguyen2024/fig2:ours"]).endswith("| holds | 2 of 2 hold |")
    assert "(0 of 1" not in markdown([line()], [row(claims=claims)])


def test_a_page_shows_both_numbers_the_interval_every_seed_and_what_differs(ledger: Path):
    page = experiment_page(line(), [row()], ledger=ledger, papers=PAPERS)
    for text in ("0.3 / 0.7", "0.5 / 0.9", "−0.4 [+0.4, +0.6]", "seed 1", "40 seeds", "Equation 1 has no bias", "abc"):
        assert text in re.sub(r"</?span[^>]*>", "", page), text
    assert "data:image/svg+xml" in page
    assert "<td>1</td>" not in page.split("The quantities compared")[1].split("</table>")[0], (
        "only what was compared is listed"
    )


def test_a_page_says_which_claims_decide(ledger: Path):
    several = row(claims=[claim(), claim(name="b", primary=False)])
    page = experiment_page(line(), [several], ledger=ledger, papers=PAPERS)
    assert "worst of those that decide" in page
    assert re.findall(r"<td>(yes)?</td>", page.split("worst of those that decide")[1])[:2] == ["yes", ""]
    assert "those that decide" not in experiment_page(line(), [row()], ledger=ledger, papers=PAPERS)


def test_a_stand_in_is_not_headed_by_the_papers_size(ledger: Path):
    page = experiment_page(line(kind="stand-in"), [row(kind="stand-in")], ledger=ledger, papers=PAPERS)
    assert "At full size: seen in a stand-in" in page
    assert "paper's size" not in page


def test_names_are_escaped_and_nothing_is_asked_of_the_network(ledger: Path):
    page = experiment_page(line(), [row()], ledger=ledger, papers=PAPERS)
    assert "SAM <b>is" not in page
    assert not re.findall(r'(?:src|href)="https?:', page)


def test_a_row_of_another_revision_says_so(ledger: Path):
    assert "another revision" in experiment_page(line(state="stale"), [row()], ledger=ledger, papers=PAPERS)


def test_rows_of_the_smoke_scale_are_not_evidence(ledger: Path, tmp_path: Path):
    write_site(tmp_path / "site", [line()], [row(scale="smoke", figure=None)], ledger=ledger, papers=PAPERS)
    assert "smoke: " not in (tmp_path / "site" / "nguyen2024-fig2.html").read_text()


def test_a_stranger_s_row_cannot_show_another_file(ledger: Path, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    page = experiment_page(line(), [row(figure="../secret")], ledger=ledger, papers=PAPERS)
    assert "c2VjcmV0" not in page


def test_what_was_declared_after_a_first_run_says_so(ledger: Path):
    page = experiment_page(line(), [row(claims=[claim(after=True)])], ledger=ledger, papers=PAPERS)
    assert "declared after a first run" in page


def test_a_figure_that_is_gone_is_named(ledger: Path):
    (ledger / "nguyen2024-fig2-full.svg").unlink()
    with pytest.raises(DataError, match=r"nguyen2024-fig2-full\.svg is named"):
        experiment_page(line(), [row()], ledger=ledger, papers=PAPERS)


def test_a_site_is_not_overwritten_unless_that_is_wanted(ledger: Path, tmp_path: Path):
    write_site(tmp_path / "site", [line()], [row()], ledger=ledger, papers=PAPERS)
    with pytest.raises(UsageError, match="--force"):
        write_site(tmp_path / "site", [line()], [row()], ledger=ledger, papers=PAPERS)
    write_site(tmp_path / "site", [line()], [row()], ledger=ledger, papers=PAPERS, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="needs a folder"):
        write_site(tmp_path / "file", [line()], [row()], ledger=ledger, papers=PAPERS)


def test_tables_for_documents_escape_bars_and_prefer_the_largest_scale():
    assert "SAM <b>is</b> \\| even" in results([row(), row(scale="small")], ["nguyen2024/fig2"])
    assert "(full)" in results([row(scale="small"), row()], ["nguyen2024/fig2"])
    mixed = row(verdict="contradicted", claims=[claim(), claim(name="b", verdict="contradicted")])
    assert "| 3 | ✗ contradicted | 1 of 2 hold |" in results([mixed], ["nguyen2024/fig2"]), "the claim that decides"
    assert "| 3 | ✓ reproduced | 1 of 2 hold |" in results([mixed], [f"nguyen2024/fig2:{claim()['name']}"])
    assert "| 3 | ✓ reproduced |" in markdown([line()], [row()], paper="nguyen2024")
    assert markdown([line()], [row()], paper="chang2025").count("\n") == 1


def test_the_command_writes_the_site_of_the_shipped_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["report", "--claims", "--out", str(tmp_path / "site"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len([*(tmp_path / "site").glob("*.html")]) == len({*(tmp_path / "site").glob("*-*.html")}) + 1
    assert told["experiments"] >= len([*(tmp_path / "site").glob("*-*.html")])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--claims", "3f2a"], "not about runs"),
        (["--claims", "--ledger", "nowhere"], "no ledger in nowhere"),
        (["3f2a", "--ledger", "claims"], "--ledger claims is for --claims"),
    ],
)
def test_wrong_words_are_answered(words: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["report", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_rank_correlation_stays_within_one_and_numbers_have_a_real_minus(tmp_path: Path) -> None:
    gap = {"mean": -0.975, "low": -1.02, "high": -0.932, "n": 3, "level": 0.95}
    trend = claim(says="the error falls as ρ rises (rank correlation)", against=0.0, difference=gap, ours_against=None)
    large = claim(name="rank", difference=gap | {"mean": -884.0, "low": -1387.0, "high": -383.0})
    lines = write_site(
        tmp_path / "site", [line()], [row(claims=[trend, large], figure=None)], ledger=tmp_path, papers=PAPERS
    )
    text = re.sub(r"</?span[^>]*>", "", (lines.parent / "nguyen2024-fig2.html").read_text())
    assert "−0.975 [−1, −0.932]" in text
    assert "−884 [−1,387, −383]" in text
    assert "<h1>Alignment · Nguyen et al. (2024)</h1>" in text
    assert "At the paper&#39;s size: ✓ reproduced" in text


def test_the_atlas_is_not_counted_among_the_papers(tmp_path: Path) -> None:
    lines = [line(), line(key="atlas/fog", kind="atlas", state="not run", verdict="not run")]
    papers = PAPERS | {"atlas": ("Atlas", "Ourselves: An atlas.")}
    first = write_site(tmp_path / "site", lines, [row(figure=None)], ledger=tmp_path, papers=papers)
    assert "2 experiments" in first.read_text()
    assert "the claims of 1 paper and an atlas of cures." in first.read_text()
