"""The wizard: its pure session, its notebook view without a kernel, its terminal view on a string."""

import io
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from dtdebug import wizard
from dtdebug.wizard import session as machine
from dtdebug.wizard import terminal, widgets
from dtdebug.wizard.session import Session, default, from_json, heard, known_line, to_json
from dtdebug_taxonomy.diagnosis.diagnose import Known
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.knowledge.schema import Cause
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

FACTS = ("works_with_one_process", "any_step_completed", "container", "nan_or_inf", "mixed_precision")
DIFF = "--- a/train.py\n+++ b/train.py\n-x = [1]  # <b>\n+y = 2\n"


def small_knowledge():
    """The shipped observations with symptoms that five yes/no facts tell apart: questions always pay."""
    shipped = load()
    pattern = next(iter(shipped.patterns))
    symptoms = []
    for number, symptom in enumerate(shipped.symptoms.values()):
        yes = {key: {"yes": "usually" if number >> bit & 1 else "rarely"} for bit, key in enumerate(FACTS)}
        cause = Cause(
            id=f"cause-{number}",
            title=f"Cause [bold]{number}[/bold] <i>",
            pattern=pattern,
            why="Because <script> of it.",
            fix="Change the line.",
            effort="edit",
            diff=DIFF,
            evidence={f"{key}=yes": "always" for bit, key in enumerate(FACTS) if number >> bit & 1},
        )
        symptoms.append(replace(symptom, observed=yes, cause=(cause,), evidence=(), says=()))
    observations = []
    for o in shipped.observations.values():
        said = (r"in a box",) if o.key == "container" else ()
        values = tuple(replace(v, says=said if v.value == "yes" else (), text=()) for v in o.value)
        known = {"effort": "glance", "answerable": "always", "context": False} if o.key in FACTS else {}
        observations.append(
            replace(o, value=values, how="Look <there>.", command="nvidia-smi", why="It [splits].", **known)
        )
    return Knowledge(tuple(symptoms), {}, tuple(observations), tuple(shipped.patterns.values()))


@pytest.fixture(scope="module")
def small():
    return small_knowledge()


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    """Every test keeps its sessions in a folder of its own."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


VOCABULARY = [(o.key, v.value) for o in load().observations.values() for v in o.value]
KEYS = sorted({key for key, _ in VOCABULARY})
answering = st.sampled_from(VOCABULARY)
transitions = st.one_of(
    st.tuples(st.just("answer"), answering),
    st.tuples(st.just("dont_know"), st.sampled_from(KEYS).map(lambda key: (key,))),
    st.tuples(st.just("describe"), st.text(max_size=40).map(lambda text: (text,))),
    st.tuples(st.just("finish"), st.just(())),
    st.tuples(st.just("back"), st.just(())),
)


def walked(steps, snapshot=None):
    session = Session(snapshot=snapshot or Snapshot(situation="it hangs"))
    for name, arguments in steps:
        session = getattr(session, name)(*arguments)
    return session


walks = st.lists(transitions, max_size=12).map(walked)


# --- the session


@given(walks, answering)
def test_back_undoes_an_answer_exactly(session, answer):
    """An answer taken back leaves the session that was."""
    assert session == session.answer(*answer).back()


@given(walks, st.sampled_from(KEYS), st.text(max_size=40))
def test_back_undoes_every_other_step_exactly(session, key, text):
    """Don't know, a description and stopping are taken back like an answer."""
    assert session == session.dont_know(key).back()
    described = session.describe(text)
    assert session == (described.back() if described.steps != session.steps else described)
    stopped = session.finish()
    assert session == (session if session.is_stopped else stopped.back())


@settings(max_examples=25)
@given(st.lists(answering, max_size=5), st.sampled_from(KEYS))
def test_not_knowing_changes_no_probability(answers, key):
    """A question put aside moves neither symptoms nor advice."""
    session = walked([("answer", a) for a in answers if a[0] != key])
    before, after = session.diagnosis(), session.dont_know(key).diagnosis()
    assert (before.symptoms, before.advice, before.fix_patterns) == (after.symptoms, after.advice, after.fix_patterns)
    assert after.question is None or after.question.key != key


@settings(max_examples=25)
@given(
    st.lists(answering, max_size=6, unique_by=lambda a: a[0]).flatmap(
        lambda a: st.tuples(st.just(a), st.permutations(a))
    )
)
def test_order_of_answers_does_not_matter(orders):
    """The same answers in another order give the same diagnosis, to the last digit."""
    one, other = (walked([("answer", a) for a in answers]) for answers in orders)
    assert one.diagnosis() == other.diagnosis()


@given(walks)
def test_saved_form_is_read_back_as_it_was(session):
    """to_json and from_json are inverse, whatever the user did."""
    assert session == from_json(to_json(session))


@given(st.binary(max_size=80))
def test_broken_saved_form_is_none(data):
    """Bytes that are no session of this version are no error."""
    found = from_json(data)
    assert found is None or isinstance(found, Session)


def test_other_version_and_damaged_forms_are_none():
    """A form of another version, a truncated one and one nested too deeply are not read."""
    good = to_json(Session(snapshot=Snapshot()))
    assert from_json(good) is not None
    assert from_json(good.replace(b'"v":1', b'"v":2')) is None
    assert from_json(good[:-3]) is None
    assert from_json(b'{"snapshot":{"exception":' + b'{"type":"E","causes":[' * 100_000) is None


def test_latest_answer_counts_and_answers_are_in_order():
    """An answer can be changed; not knowing takes it back; a new answer takes that back."""
    session = walked(
        [("answer", ("nodes", "single")), ("answer", ("container", "yes")), ("answer", ("nodes", "multiple"))]
    )
    assert session.answers == (("container", "yes"), ("nodes", "multiple"))
    unsure = session.dont_know("nodes")
    assert (unsure.answers, unsure.unknown) == ((("container", "yes"),), ("nodes",))
    assert unsure.answer("nodes", "single").unknown == ()


def test_keys_and_values_are_read_leniently():
    """Capitals, blanks and hyphens do not matter."""
    assert walked([("answer", ("Port-In-Use ", " YES"))]).answers == (("port_in_use", "yes"),)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("nodez", "single", "'nodez': did you mean nodes?"),
        ("nodes", "maybe", "'maybe' is no value of nodes: choose one of single, multiple"),
        ("x\x1b[31m\n" * 99, "yes", "no observation is called 'x x x x"),
    ],
)
def test_wrong_answer_is_one_clear_line(key, value, expected):
    """What is wrong and what there is instead, in one short line without control characters."""
    with pytest.raises(ValueError, match=r"^no|is no") as error:
        Session(snapshot=Snapshot()).answer(key, value)
    text = str(error.value)
    assert expected in text
    assert "\n" not in text
    assert "\x1b" not in text


def test_measured_value_is_known_and_an_answer_overrides_it(small):
    """What was measured is filled in with its source; the user has the last word."""
    session = Session(snapshot=Snapshot(situation="runs in a box"))
    known = {k.key: k for k in session.diagnosis(small).known}
    assert (known["container"].source, known["container"].values) == ("said", ("yes",))
    changed = {k.key: k for k in session.answer("container", "no", small).diagnosis(small).known}
    assert (changed["container"].source, changed["container"].values) == ("answered", ("no",))


def test_known_line_tells_source_and_words():
    """One line: source, value and the words it was read from."""
    known = Known(key="nodes", values=("single",), source="measured", words="all ranks\non one host")
    assert known_line(known) == "measured: nodes = single, because all ranks on one host"


def test_stopping_asks_nothing_more_and_any_step_goes_on(small):
    """A stopped session has no question; an answer or going back opens it again."""
    session = Session(snapshot=Snapshot(situation="it fails"))
    stopped = session.finish()
    assert stopped.is_stopped
    assert stopped.question(stopped.diagnosis(small)) is None
    assert stopped == stopped.finish()
    assert not stopped.answer("nodes", "single").is_stopped
    assert session.question(session.diagnosis(small)) is not None


def test_questions_end(small):
    """Answering whatever is asked comes to an end: no question pays any more."""
    session = Session(snapshot=Snapshot())
    for _ in range(len(KEYS) + 1):
        question = session.question(session.diagnosis(small))
        if question is None:
            break
        session = session.answer(question.key, question.values[0][0], small)
    else:
        pytest.fail("questions never end")
    assert len(session.answers) == len(session.steps) > 0


def test_large_snapshot_is_bounded_and_lines_keep_their_numbers():
    """The words' beginning and the output's end are kept, with line numbers of the whole."""
    output = "".join(f"line {n}\n" for n in range(1, 20_001))
    kept = Session(snapshot=Snapshot(situation="x" * 10_000, output=output)).snapshot
    assert len(kept.situation) == 8 * 1024
    assert 64 * 1024 >= len(kept.output) > 60 * 1024
    ((first, whole),) = kept.first_lines
    assert (1, f"line {whole}") == (first, kept.output.split("\n")[0])
    assert to_json(Session(snapshot=kept)) == to_json(Session(snapshot=Session(snapshot=kept).snapshot))


def test_excerpt_that_is_cut_keeps_the_numbers_of_its_parts():
    """Dropping lines of an excerpt shifts where its parts begin."""
    parts = ((1, 10), (5, 100), (9, 900))
    assert machine._shift_lines(parts, 6) == ((1, 102), (3, 900))
    assert machine._shift_lines(parts, 4) == ((1, 100), (5, 900))


def test_one_endless_line_is_cut_within():
    """Output without any newline keeps its last characters."""
    assert Session(snapshot=Snapshot(output="y" + "x" * 64 * 1024)).snapshot.output == "x" * 64 * 1024


def test_description_is_cleaned_added_to_and_bounded():
    """Escapes and half surrogate pairs go, lines add up, and the whole can be saved."""
    session = (
        Session(snapshot=Snapshot()).describe("it \x1b[31mhangs\ud800").describe("on 2 nodes").describe("x" * 9_000)
    )
    assert session.snapshot.situation.startswith("it hangs?\non 2 nodes\nxxx")
    assert len(session.snapshot.situation) == 8 * 1024
    assert wizard.keep(session)
    assert session == wizard.resume()


def test_vocabulary_does_not_clash_with_the_keys_of_the_terminal():
    """No value is a number, a command or has a blank: what is typed has one meaning."""
    clashes = {"d", "h", "w", "b", "l", "q", "?", "set"}
    assert [v for _, v in VOCABULARY if v in clashes or v.isdecimal() or " " in v or v != v.lower()] == []


# --- keeping


def test_resume_without_or_with_broken_state_is_none(state_folder):
    """No file, and a file that is no session, mean that nothing was left open."""
    assert wizard.resume() is None
    state_folder.mkdir()
    (state_folder / "wizard.json").write_text("{")
    assert wizard.resume() is None
    (state_folder / "wizard.json").write_text('{"v": 9}')
    assert wizard.resume() is None


def test_session_that_cannot_be_saved_is_said_not_raised(monkeypatch, tmp_path):
    """A state directory that can't be written, and text without JSON form, give False."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "file" / "below"))
    assert not wizard.keep(Session(snapshot=Snapshot()))
    assert not wizard.keep(Session(snapshot=Snapshot(exception=ExceptionInfo(type="E", message="\ud800"))))


# --- the terminal view on a string


def play(session, knowledge, lines, *paths, **console):
    """Runs the terminal view with typed lines, then `q`, then paths of reports; the session and what was shown."""
    shown, typed, files = io.StringIO(), iter(lines), iter(paths)

    def ask(prompt):
        line = next(files, "") if "report" in prompt else next(typed, "q")
        if isinstance(line, type):
            raise line
        shown.write(f"{prompt}{line}\n")
        return line

    view = Console(**{"file": shown, "width": 80, "color_system": None, **console})
    return terminal.run(session, knowledge, view, ask), shown.getvalue()


TOLD = Session(snapshot=Snapshot(situation="it fails"))


def test_terminal_asks_what_is_seen_if_nothing_was_told(small):
    """Lines up to an empty one are one description, and one step back."""
    session, shown = play(Session(snapshot=Snapshot()), small, ["it hangs", "in a box", ""])
    assert "What do you see? (a line or two; empty line to skip)" in shown
    assert session.snapshot.situation == "it hangs\nin a box"
    assert Session(snapshot=Snapshot()) == session.back().back()


def test_terminal_takes_numbers_names_and_beginnings(small):
    """1, `no` and `y` answer; every answer is followed by the state of belief."""
    session, shown = play(TOLD, small, ["1", "no", "y"])
    assert [value for _, value in session.answers] == ["yes", "no", "yes"]
    assert shown.count("So far: ") == 3
    assert session.is_stopped


def test_terminal_shows_how_and_why_and_goes_on_asking(small):
    """`h` shows the way and the command to copy, `w` the reason; neither changes anything."""
    session, shown = play(TOLD, small, ["h", "w"])
    assert "Look <there>.\n    nvidia-smi" in shown
    assert "It [splits]." in shown
    assert (TOLD.finish(), 1) == (session, shown.count("Question "))


def test_terminal_takes_back_and_lists_and_changes(small):
    """`b` undoes, `l` lists sources, `set` changes any value, `set KEY ?` takes it back."""
    session, shown = play(TOLD, small, ["1", "b", "?", "set nodes multiple", "set nodes ?", "set NODES single", "l"])
    assert session.answers == (("nodes", "single"),)
    assert len(session.unknown) == 1
    assert "answered: nodes = single" in shown
    assert f"don't know: {session.unknown[0]}" in shown


@pytest.mark.parametrize(
    "line", ["", "0", "99", "²", "maybe", "set nodes", "set nodes 7", "b", "\x1b[31m[bold]x", "y" * 10_000]
)
def test_terminal_asks_again_after_invalid_input(small, line):
    """One line, at most 80 columns, and the question stands."""
    session, shown = play(TOLD, small, [line])
    assert TOLD.finish() == session
    prompt = "Answer [1-2 ? h w b l q]: "
    complaint = shown.split(prompt)[1].split("\n", 1)[1]
    assert complaint.count("\n") == 1
    assert 1 < len(complaint) <= 81
    assert "\x1b" not in complaint


def test_terminal_enter_takes_what_was_heard(small):
    """A hint in the user's words is offered with its words, and Enter takes it."""
    start = Session(snapshot=Snapshot(situation="runs in a box"))
    others = [key for key in KEYS if key != "container"]
    for key in others:
        start = start.dont_know(key)
    diagnosis = start.diagnosis(small)
    assert (heard(diagnosis).key, default(diagnosis)) == ("container", "yes")
    session, shown = play(start, small, [""])
    assert session.answers == (("container", "yes"),)
    assert "said: container = yes, because in a box (Enter takes yes)" in shown


def test_terminal_ends_with_advice_and_a_report(small, tmp_path):
    """Advice with its diff as it is, then the report where the user wants it, never over another file."""
    path = tmp_path / "report.md"
    taken = tmp_path / "taken.md"
    taken.write_text("mine")
    session, shown = play(TOLD, small, ["1"] * 5, str(taken), str(tmp_path / "no" / "where.md"), "2", str(path))
    assert "Cause [bold]" in shown
    assert "\n    -x = [1]  # <b>\n    +y = 2\n" in shown
    assert "Name a file such as report.md" in shown
    assert taken.read_text() == "mine"
    assert "already exists" in " ".join(shown.split())
    assert "can't be written: No such file or directory" in " ".join(shown.split())
    assert session.is_stopped
    assert path.read_text().startswith("## ")


def test_terminal_writes_the_callers_report_without_asking(small, tmp_path):
    """A path given by the caller is written over."""
    path, shown = tmp_path / "report.md", io.StringIO()
    path.write_text("old")
    terminal.run(TOLD, small, Console(file=shown, color_system=None), lambda prompt: "q", path)
    assert path.read_text().startswith("## ")


def test_terminal_interrupted_keeps_answers_and_says_how_to_go_on(small):
    """Ctrl-C ends at once; the end of the input shows the advice first; both keep all answers."""
    session, shown = play(TOLD, small, ["1", "2", KeyboardInterrupt])
    assert len(session.answers) == 2
    assert session == wizard.resume()
    assert "To go on: dtdebug wizard --resume" in shown
    assert "Fix: " not in shown
    session, shown = play(wizard.resume(), small, ["1", "1", EOFError])
    assert session == wizard.resume()
    assert len(session.answers) >= 3
    assert "Fix: " in shown


def test_terminal_goes_on_with_a_stopped_session(small):
    """Resuming after stopping asks the next question again."""
    session, shown = play(TOLD.finish(), small, ["1"])
    assert len(session.answers) == 1
    assert "Question 1" in shown


def test_terminal_says_if_nothing_can_be_saved(small, monkeypatch, tmp_path):
    """A promise to keep answers is only given if it holds."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "file"))
    _, shown = play(TOLD, small, ["1", KeyboardInterrupt])
    assert "could not be saved" in shown
    assert "--resume" not in shown


@pytest.mark.parametrize("console", [{"color_system": None}, {"no_color": True, "color_system": "standard"}])
def test_terminal_without_colour_has_no_escape_and_80_columns(small, console):
    """Neither NO_COLOR nor a pipe gets a control code, and prose is wrapped."""
    hostile = Session(snapshot=Snapshot(situation="in a box \x1b]0;title\x07 [red]" + "word " * 60))
    _, shown = play(hostile, small, ["l", "h", "1", "1", "1", "1", "1"], **console)
    assert "\x1b" not in shown
    assert [line for line in shown.splitlines() if len(line) > 80 or line.endswith("  ")] == []


def test_terminal_colours_the_diff_where_colour_is_wanted(small):
    """On a terminal with colour an added line is styled."""
    _, shown = play(TOLD, small, ["1", "1", "1", "1", "1"], color_system="standard", force_terminal=True)
    assert "\x1b[" in shown.split("Fix: ")[1]


# --- the notebook view without a kernel


@pytest.fixture
def view(small):
    return widgets.Wizard(TOLD, small)


def choose(view, value):
    view.choices.value = value
    view.next.click()


def test_widgets_answer_go_back_and_stop(view, small):
    """Buttons are the transitions; every step is kept."""
    choose(view, "yes")
    assert tuple(v for _, v in view.session.answers) == ("yes",)
    assert view.session == wizard.resume()
    view.dont_know.click()
    assert len(view.session.unknown) == 1
    view.back.click()
    view.back.click()
    assert view.session == TOLD
    assert view.back.disabled
    view.stop.click()
    assert TOLD.finish() == view.session == wizard.resume()


def test_widgets_are_reused_and_follow_the_session(view):
    """The same few widgets are filled anew; another session can be shown."""
    before = [id(w) for w in view.box.children]
    asked = view.question.value
    choose(view, "no")
    assert asked != view.question.value
    assert view.choices.value is None
    assert before == [id(w) for w in view.box.children]
    view.update(TOLD)
    assert asked == view.question.value
    assert "dtdebug-wizard" in view.box._dom_classes


def test_widgets_keep_a_choice_while_help_is_read(view):
    """How and why show text below the buttons and lose nothing."""
    view.choices.value = "no"
    view.how.click()
    assert view.detail.value == "<p>Look &lt;there&gt;.</p><pre>nvidia-smi</pre>"
    view.why.click()
    assert view.detail.value == "<p>It [splits].</p>"
    assert view.choices.value == "no"
    assert view.session == TOLD


def test_widgets_say_what_is_missing(view):
    """Next without a choice is one line and no step."""
    view.next.click()
    assert "Choose an answer" in view.detail.value
    assert view.session == TOLD


def test_widgets_take_a_description_first(small):
    """With nothing told the view asks what is seen; the words are escaped wherever they are shown."""
    view = widgets.Wizard(Session(snapshot=Snapshot()), small)
    assert view.situation.layout.display is None
    view.situation.value = "<script>alert(1)</script> in a box"
    view.how.click()
    assert view.situation.value
    view.dont_know.click()
    assert view.session.snapshot.situation == "<script>alert(1)</script> in a box"
    assert view.situation.layout.display == "none"
    assert "said: container = yes, because in a box" in view.known.value
    view.stop.click()
    assert "<script>" not in "".join(
        w.value for w in (view.known, view.advice, view.question, view.status, view.detail)
    )


def test_widgets_end_with_advice_and_report(view):
    """After the last step the advice and the Markdown report are there, no foreign diff, and no button asks."""
    for _ in range(5):
        if view.advice.value:
            break
        choose(view, "yes")
    view.stop.click()
    assert "&lt;script&gt;" in view.advice.value
    assert "<b>Fix</b>" in view.advice.value
    assert "an example" not in view.advice.value
    assert view.report.value.startswith("## ")
    assert {"none"} == {w.layout.display for w in (view.next, view.stop, view.choices, view.question)}
    view.dont_know.click()
    assert "no question" in view.detail.value


def test_widgets_have_names_for_screen_readers(view):
    """Every control has a description and a tooltip; the state of belief is announced."""
    buttons = (view.next, view.dont_know, view.how, view.why, view.back, view.stop)
    for control in (*buttons, view.choices, view.situation, view.report):
        assert control.description
        assert control.tooltip
    assert 'aria-live="polite"' in view.status.value


def test_widgets_survive_clicks_from_many_threads(view):
    """Steps from several threads are all taken, none by half."""
    threads = [threading.Thread(target=view.dont_know.click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(view.session.unknown) == len(view.session.steps) == 4


def test_widgets_show_a_failure_of_ours_as_a_line(view, monkeypatch):
    """A defect in a callback stays in the view."""
    monkeypatch.setattr(Session, "dont_know", lambda *_: 1 / 0)
    view.dont_know.click()
    assert "dtdebug: internal error (ZeroDivisionError: division by zero)." in view.detail.value


def test_missing_ipywidgets_is_one_line(monkeypatch, capsys):
    """Without ipywidgets there is a hint what to install and nothing else."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert widgets.show(TOLD) is None
    assert 'pip install "dtdebug[notebook]"' in capsys.readouterr().out


def test_summary_tells_the_path_in_text_and_html(small, capsys):
    """Words, answers, open questions and the advice; escaped in HTML; printed where there is no notebook."""
    session = Session(snapshot=Snapshot(situation="<b>slow</b>")).answer("nodes", "single").dont_know("container")
    story = widgets.story(session, small)
    for part in ("> <b>slow</b>", "answered: nodes = single", "don't know: container"):
        assert part in story["text/plain"]
    assert "<b>slow</b>" not in story["text/html"]
    assert "&lt;b&gt;slow&lt;/b&gt;" in story["text/html"]
    assert "Next question" not in story["text/html"]
    widgets.summary(session, small)
    assert "answered: nodes = single" in capsys.readouterr().out
