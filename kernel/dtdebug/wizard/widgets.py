"""Shows the wizard in a notebook: a few core widgets, refilled from the session after every step.

The session is the single source of truth; the widgets are reused and hold no state beyond it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from html import escape
from threading import RLock
from typing import Any

import msgspec

from dtdebug.presentation.cell_answer import to_cell_text
from dtdebug.presentation.diagnosis_card import Card, card, short_html, to_html
from dtdebug.privacy.boundary import mask_snapshot
from dtdebug.privacy.sanitize import clean
from dtdebug.process.switch_interval import short_switch_interval
from dtdebug.wizard import keep
from dtdebug.wizard.session import Session, default, heard, known_line
from dtdebug_taxonomy.diagnosis.diagnose import Asked, Diagnosis
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.presentation.text import to_markdown

HINT = 'The wizard needs ipywidgets: pip install "dtdebug[notebook]", or run `dtdebug wizard` in a terminal.'


def show(session: Session, knowledge: Knowledge | None = None) -> Wizard | None:
    """Display the wizard as output of the running cell; print a hint and return None if ipywidgets is missing."""
    try:
        wizard = Wizard(session, knowledge)
    except ImportError:
        print(HINT)
        return None
    from IPython.display import display

    display(wizard.box)  # type: ignore[no-untyped-call]
    return wizard


class Wizard:
    """View of one session; callbacks may come from any thread."""

    def __init__(self, session: Session, knowledge: Knowledge | None = None) -> None:
        """Create the widgets once.

        Raises:
            ImportError: ipywidgets is missing.

        """
        import ipywidgets

        self._knowledge = knowledge or load()
        self._lock = RLock()
        self._context = copy_context()
        """Context of the cell that made the widgets; front ends answer where the last message came from."""
        self._detail = ""
        self.session = session.back() if session.is_stopped else session

        self.status, self.known, self.question, self.detail, self.advice = (ipywidgets.HTML() for _ in range(5))
        self.situation = ipywidgets.Textarea(
            description="What do you see?",
            placeholder="A line or two: what happens, on how many devices, since when",
            tooltip="Describe in your own words what you see, then press Next",
            style={"description_width": "initial"},
        )
        self.choices = ipywidgets.RadioButtons(
            options=[],
            description="Answer",
            tooltip="Choose one answer, then press Next",
            layout={"width": "max-content"},  # a wrapped label would lie on top of the next one
        )
        self.report = ipywidgets.Textarea(
            description="Report",
            tooltip="The report as Markdown, to copy into an issue",
            rows=12,
            layout={"width": "100%"},
        )

        def button(name: str, tooltip: str, action: Callable[[], Session | None], style: str = "") -> Any:
            made = ipywidgets.Button(
                description=name, tooltip=tooltip, button_style=style, layout={"width": "auto", "flex": "0 0 auto"}
            )
            made.on_click(partial(self._handle_click, action))
            return made

        self.next = button("Next", "Takes the description and the chosen answer", self._next, "primary")
        self.dont_know = button("Don't know", "Puts this question aside", self._dont_know)
        self.how = button("Show me how", "Shows how to find out", self._how)
        self.why = button("Why?", "Shows why this is asked", self._why)
        self.back = button("Back", "Takes back the last step", self._back)
        self.stop = button("Stop", "Asks nothing more and shows the advice", self._stop)
        self.box = ipywidgets.VBox(
            [
                self.status,
                self.known,
                self.situation,
                self.question,
                self.choices,
                ipywidgets.HBox(
                    [self.next, self.dont_know, self.how, self.why, self.back, self.stop],
                    layout={"flex_flow": "row wrap"},
                ),
                self.detail,
                self.advice,
                self.report,
            ]
        )
        self.box.add_class("dtdebug-wizard")
        self._render()

    def update(self, session: Session) -> None:
        """Show another session, such as one that `%dtdebug answer` has changed.

        It runs in the context of the cell that made the widgets, so that output does not go to a hanging cell.
        """
        with self._lock:
            self._context.copy().run(self._go, session)

    def _handle_click(self, action: Callable[[], Session | None], _button: Any) -> None:
        """Run a transition; without one only the line below the buttons changes, and the choice is kept."""
        with self._lock, short_switch_interval():
            self._detail = ""
            try:
                session = action()
                if session is not None:
                    self._go(session)
            except ValueError as error:
                self._detail = _paragraph(str(error))
            except Exception as error:
                self._detail = _paragraph(f"dtdebug: internal error ({type(error).__name__}: {error}).")
            self.detail.value = self._detail

    def _go(self, session: Session) -> None:
        self.session = session
        if not keep(session):
            self._detail = _paragraph("This step could not be saved: the state directory can't be written.")
        self._render()

    def _diagnosis(self) -> Card:
        return card(self.session.diagnosis(self._knowledge), self.session.snapshot)

    def _current_question(self) -> Asked:
        question = self.session.question(self._diagnosis())
        if question is None:
            raise ValueError("There is no question to answer.")
        return question

    def _add_description(self) -> Session:
        """Return the session with the typed description that was not submitted yet."""
        return self.session.describe(self.situation.value)

    def _next(self) -> Session:
        session = self._add_description()
        if self.choices.value is not None:
            return session.answer(self._current_question().key, self.choices.value, self._knowledge)
        if session == self.session:
            raise ValueError("Choose an answer, or press Don't know.")
        return session

    def _dont_know(self) -> Session:
        return self._add_description().dont_know(self._current_question().key, self._knowledge)

    def _back(self) -> Session:
        return self.session.back()

    def _stop(self) -> Session:
        return self._add_description().finish()

    def _how(self) -> None:
        asked = self._current_question()
        command = f"<pre>{escape(asked.command)}</pre>" if asked.command else ""
        self._detail = _paragraph(asked.how) + command

    def _why(self) -> None:
        self._detail = _paragraph(self._current_question().why)

    def _render(self) -> None:
        """Fill every widget from the session."""
        diagnosis = self._diagnosis()
        question = self.session.question(diagnosis)
        telling = not self.session.has_description and not self.session.is_stopped
        done = question is None and not telling
        told = self.session.has_description or diagnosis.known
        first = short_html(diagnosis) if told else "<b>Nothing has failed yet: say what you see.</b>"
        self.status.value = f'<div role="status" aria-live="polite">{first}</div>'
        self.known.value = _known_html(self.session, diagnosis)
        self.situation.value = ""
        self._ask(diagnosis, question)
        self.back.disabled = not self.session.steps
        self.advice.value = to_html(_without_question(diagnosis)) if done else ""
        self.report.value = to_markdown(diagnosis, mask_snapshot(self.session.snapshot)) if done else ""
        for widget in (self.question, self.choices, self.dont_know, self.how, self.why):
            _show_if(question is not None, widget)
        for widget in (self.next, self.stop):
            _show_if(not done, widget)
        for widget in (self.advice, self.report):
            _show_if(done, widget)
        _show_if(telling, self.situation)

    def _ask(self, diagnosis: Diagnosis, question: Asked | None) -> None:
        if question is None:
            self.question.value, self.choices.options = "", ()
            return
        hint = heard(diagnosis)
        said = _paragraph(known_line(hint)) if hint else ""
        self.question.value = f"<h4>{escape(question.ask)}</h4>{said}"
        self.choices.options = [
            (value if value == means else f"{means} ({value})", value) for value, means in question.values
        ]
        self.choices.value = default(diagnosis)


def summary(session: Session, knowledge: Knowledge | None = None) -> None:
    """Emit the answers and the advice as ordinary output, so that a saved notebook still contains them."""
    data = story(session, knowledge)
    shell = sys.modules.get("IPython.core.interactiveshell")
    if shell is None or not shell.InteractiveShell.initialized():
        print(data["text/plain"])
        return
    shell.InteractiveShell.instance().display_pub.publish(data)


def story(session: Session, knowledge: Knowledge | None = None) -> dict[str, str]:
    """Return the known facts, the answers and the diagnosis as plain text and as HTML."""
    diagnosis = _without_question(card(session.diagnosis(knowledge), session.snapshot))
    lines = [clean(line) for line in _known_lines(session, diagnosis)]
    words = session.snapshot.situation.split("\n") if session.snapshot.situation else []
    answer = to_cell_text(diagnosis.answer) if diagnosis.answer is not None else ""
    plain = [*(f"> {line}" for line in words), *lines, answer]
    quote = f"<blockquote>{'<br>'.join(map(escape, words))}</blockquote>" if words else ""
    return {"text/plain": "\n".join(plain), "text/html": quote + _known_html(session, diagnosis) + to_html(diagnosis)}


def _without_question(diagnosis: Card) -> Card:
    return msgspec.structs.replace(diagnosis, question=None)


def _known_lines(session: Session, diagnosis: Diagnosis) -> list[str]:
    return [known_line(k) for k in diagnosis.known] + [f"don't know: {key}" for key in session.unknown]


def _known_html(session: Session, diagnosis: Diagnosis) -> str:
    lines = _known_lines(session, diagnosis)
    return "<ul>" + "".join(f"<li>{escape(clean(line))}</li>" for line in lines) + "</ul>" if lines else ""


def _paragraph(text: str) -> str:
    return f"<p>{escape(clean(text))}</p>"


def _show_if(visible: bool, widget: Any) -> None:
    widget.layout.display = None if visible else "none"
