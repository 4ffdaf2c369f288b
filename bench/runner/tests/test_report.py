"""The page: complete, self-contained, safe with what it is given."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from conftest import made_up
from runner import palette, report
from runner.charts import round_numbers
from runner.suites import load

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks nesting; gathers ids and what is loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.loads, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._look(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self._look(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def _look(self, attrs):
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.loads += [attrs[a] for a in ("href", "src", "xlink:href") if a in attrs]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run of two suites, looked at by all tests of this file."""
    from conftest import Build

    root = tmp_path_factory.mktemp("ran") / "build"
    root.mkdir()
    build = Build(root)
    build.behave(libev={"factor": 1.3}, asio={"fail": "<script>alert(1)</script>"})
    done = build.run("drum", "timers", "--pairs", "100,1000,100000000", "--active", "10,100",
                     "--timeouts", "no,yes", "--rounds", "2", "--subjects",
                     "tambour,floor,libev,asio,muduo", "--timers", "10,100")
    assert done.returncode == 0, done.stderr
    return build, done


def test_it_stands_alone(ran):
    build, _ = ran
    page = Page(build.page())
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert all(where.startswith("#") for where in page.loads)
    assert not re.search(r"url\((?!#)|@import", build.page())


def test_ids_are_unique(ran):
    page = Page(ran[0].page())
    assert len(page.ids) == len(set(page.ids))
    assert {where[1:] for where in page.loads} <= set(page.ids)


def test_it_shows_the_panels_for_both_schemes(ran):
    text = ran[0].page()
    titles = re.findall(r'aria-label="([^"]*)"', text)
    panels = [f"{n} active: {w}" for n in (10, 100) for w in ("whole round", "event processing")]
    assert titles[:8] == panels * 2
    assert titles[8:] == [f"{words}: one timer" for words in (
        "Arm", "Reset", "Cancel", "Expire", "Reset once, in all", "Cancel, in all")]
    assert "prefers-color-scheme:dark" in text
    for look in palette.looks():
        assert look.light not in text.split("</style>", 1)[1]


def test_files_stand_beside_it(ran):
    where = ran[0].root / "bench-report"
    stems = {path.stem for path in where.glob("*.png")}
    assert stems == {path.stem for path in where.glob("*.svg")} and len(stems) == 14
    for path in where.glob("*.svg"):
        ElementTree.parse(path)


def test_it_tells_ratios_reasons_clamping_and_the_command(ran):
    build, done = ran
    text = build.page()
    assert "bench/run drum timers --pairs 100,1000,100000000" in text
    assert "asked for pairs 100,000,000, ran" in text
    assert "no muduo here" in text
    assert re.search(r"<tr class=\"ours\"><th>tambour</th>", text)
    assert re.search(r"<th>libev</th>.*?1\.30", text)
    assert "0.77" in done.stdout  # 1 / 1.3, on the terminal
    assert str(build.root / "bench-report" / "index.html") in done.stdout


def test_what_subjects_say_is_escaped(ran):
    assert "<script>" not in ran[0].page()
    assert "&lt;script&gt;" in ran[0].page()


def test_it_can_be_made_again_from_the_figures(ran, tmp_path):
    build, _ = ran
    figures = build.root / "bench-report" / "results.json"
    done = build.run("report", str(figures), "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "index.html").read_text() == build.page()


def test_a_document_with_little_in_it(tmp_path):
    for document in (made_up({}, pairs=1), made_up({"who": [1.0]}, pairs=1, active=1),
                     made_up({"tambour": [0.0], "libev": [0.0]}, pairs=1, active=1)):
        Page(report.write(document, load(), tmp_path).read_text())


@pytest.mark.parametrize("rounds", [2, 3])
def test_unknown_noise_is_told_and_not_coloured(tmp_path, rounds):
    document = made_up({"tambour": [1.0] * rounds, "libev": [2.0] * rounds}, pairs=1,
                       active=1)
    text = report.write(document, load(), tmp_path).read_text()
    headline = re.search(r"<tr><th>drum: event processing.*?</tr>", text, re.DOTALL).group()
    assert ('class="best"' in headline) == (rounds == 3)
    assert ("fewer than three samples" in headline) == (rounds < 3)
    assert ("noise unknown" in text.split("Figures</h3>")[1]) == (rounds < 3)
    assert ("≈ 2.00" in text) == (rounds < 3)


def test_it_says_where_all_ran(tmp_path):
    """A server's clients and the threads that post are not on the core of what is measured."""
    lead = report.write(made_up({}), load(), tmp_path).read_text().split('class="lead">')[1]
    lead = lead.split("</p>")[0]
    assert "pinned to one core" not in lead and "on one core" in lead and "on the others" in lead


def test_every_look_is_a_subjects():
    known = {subject.name for suite in load().values() for subject in suite.subjects}
    assert set(palette._LOOKS) <= known


def test_no_chart_of_an_earlier_run_stays(build):
    out = build.root / "bench-report"
    out.mkdir()
    (out / "old.png").touch()
    build.run("drum", "--subjects", "libev", "--rounds", "1")
    assert not (out / "old.png").exists()
    (out / "mine.png").touch()
    build.run("drum", "--subjects", "libev", "--rounds", "1", "--out", str(out))
    assert (out / "mine.png").exists()  # a directory that someone named is theirs


@pytest.mark.parametrize("low, high", [(0.96, 2.6), (11, 13), (1, 2000), (1e-3, 1e5), (5.4, 5.5)])
def test_axes_have_ticks(low, high):
    ticks = round_numbers(low, high)
    assert 3 <= len(ticks) <= 12
    assert all(low <= tick <= high for tick in ticks) and ticks == sorted(ticks)
