"""Open transactions as programs: definitions, rows, failing requests and savepoints by chance.

    program   opened at a version; its requests and the answer of each, errors too; its commit
    replay    all programs that are there, in the order of their versions, through a model whose
              savepoints are whole copies of the database (`step_model`)

Each program is replayed at the version that it was opened at: it saw that version and its own
writes. One that is there is replayed at its own version too, and must get the same answers again,
those of what it undid or failed at among them: whatever a client has seen is part of what it
decided by. In the end the tables are what the model has.

Half of the programs go by HTTP. A client that has lost the answer of its commit, because it left or
the process crashed, comes back and asks for it. Some programs are one list of statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.stored_answers import StoredAnswer, find_answer
from qserver.engine.work import run
from qserver.errors import (
    Applied,
    QserverError,
    QueryCanceled,
    SerializationFailure,
    TransactionNotFound,
)
from qserver.query.results import Once, Result, RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.transaction import Transaction
from simulations.faults import Profile
from simulations.service import Service
from simulations.step_model import (
    EXPECTED,
    TABLES,
    Contents,
    Control,
    ModelSession,
    ModelTable,
    Step,
    StepAnswer,
    draw_step,
    draws_for,
    names_after,
)
from simulations.web.front import Front
from simulations.workloads.sql_workload import BY_HTTP, SqlWorkload

MARK: Final = "INSERT INTO programs VALUES ($1)"
ASKED_AGAIN_MOST: Final = 20


class _LeftBehind(Exception):  # the client does not come back
    """The transaction is abandoned without a commit."""


@dataclass(slots=True)
class Program:
    number: int
    opened: int | None = None
    """The version that it reads; None if it is not known."""
    steps: list[tuple[Step, StepAnswer | None]] = field(default_factory=list)
    """The answer is None where a fault has failed the request."""
    affected: int | None = None
    """As told by the answer of its commit."""
    name: bytes = b""
    """That of the stored answer of its commit."""
    handle: str | None = None
    """By HTTP: the transaction whose commit was sent."""


class SqlSteps(SqlWorkload):
    name = "sql_steps"
    tables = (
        "CREATE TABLE programs (number integer PRIMARY KEY)",
        *(f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer)" for name in TABLES),
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self.programs: dict[int, Program] = {}
        self.told: dict[int, int] = {}
        self._numbers = count(1)

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        tries: list[Program] = []
        """One, unless the log was taken over, and the next owner got it all again."""

        async def send(database: SqlDatabase) -> Outcome:
            tries.append(self._new_program())
            if kind < 0.2:
                return await self._run_list(database, tries[-1])
            return await self._run_steps(database, tries[-1])

        async def post(front: Front) -> Outcome:
            tries.append(self._new_program())
            return await self._post_steps(front, tries[-1])

        by_http = kind > 1 - BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        may = (*EXPECTED, SerializationFailure, TransactionNotFound, QueryCanceled)
        try:
            version: int | QserverError = (await asked).version
        except _LeftBehind:
            service.world.reach("an open transaction was left behind")
            return
        except QserverError as error:
            self._judge_error(service, error, may)
            version = error
        if not tries:
            return
        program = tries[-1]
        if isinstance(version, QserverError) and version.applied is Applied.UNKNOWN:
            version = await self._ask_again(service, program, version)
        self._note(program, version)

    def _new_program(self) -> Program:
        number = next(self._numbers)
        program = self.programs[number] = Program(number, name=b"program %d" % number)
        return program

    def _note(self, program: Program, outcome: int | QserverError) -> None:
        if isinstance(outcome, int):
            self.told[program.number] = outcome
            self.book.note(program.number, None)
        else:
            self.book.note(program.number, outcome)

    # --- straight to the engine ---

    async def _run_steps(self, database: SqlDatabase, program: Program) -> Outcome:
        transaction = await database.open()
        program.opened = transaction.version

        async def ask(statements: list[Statement]) -> list[Result]:
            return (await database.inside(transaction, statements, RunOptions())).results

        try:
            await self._go_through(program, ask)
            answer = StoredAnswer(b"", float("inf"), b"", b"")
            outcome: Outcome = await run(
                database.committing(transaction, RunOptions(), (program.name, answer))
            )
            program.affected = transaction.rows_changed - 1
            return outcome
        finally:
            transaction.release()

    async def _go_through(self, program: Program, ask: Any) -> None:
        """Run a program by chance up to its commit."""
        chance, draws = self.chance, draws_for(self.chance)
        names: list[str] = []
        failed = False
        for _ in range(chance.randint(2, 10)):
            if chance.random() < 0.2:
                await trio.sleep(chance.expovariate(1.0) * self.profile.delay_seconds * 20)
            step = draw_step(draws, names, failed)
            answer = await self._answer(program, step, ask)
            failed = isinstance(answer, str) or answer is None
            names = names if failed else names_after(names, step)
        if failed and names:
            answer = await self._answer(program, (Control("ROLLBACK TO", names[-1]),), ask)
            failed = isinstance(answer, str) or answer is None
        if failed or chance.random() < 0.1:
            raise _LeftBehind
        await ask([Statement(MARK, [program.number])])

    async def _answer(self, program: Program, step: Step, ask: Any) -> StepAnswer | None:
        answer: StepAnswer | None
        try:
            results = await ask([each.statement for each in step])
        except EXPECTED as error:
            answer = error.code
        except QserverError as error:
            if error.applied is Applied.UNKNOWN or isinstance(error, TransactionNotFound):
                raise  # nobody can tell how far it came
            answer = None
        else:
            answer = tuple((tuple(each.rows), each.affected_rows) for each in results)
        program.steps.append((step, answer))
        return answer

    async def _run_list(self, database: SqlDatabase, program: Program) -> Outcome:
        """Send all requests of a program as one list of statements."""
        draws = draws_for(self.chance)
        step: list[Any] = []
        for _ in range(self.chance.randint(1, 5)):
            step += draw_step(draws, names_after((), step), False)
        statements = [*(each.statement for each in step), Statement(MARK, [program.number])]

        def render(results: list[Result], retries: int) -> tuple[bytes, bytes]:
            answers = tuple((tuple(each.rows), each.affected_rows) for each in results[:-1])
            program.steps[:] = [(step, answers)]
            return b"", b""

        once = Once(program.name, b"", float("inf"), render)
        done = await database.transaction(
            statements, max_retries=self.profile.max_retries, once=once
        )
        return Outcome(done.version, done.version, done.retries)

    # --- by HTTP ---

    async def _post_steps(self, front: Front, program: Program) -> Outcome:
        handle, program.opened = await self.http.open_transaction(front)

        async def ask(statements: list[Statement]) -> list[Result]:
            return (await self.http.inside(front, handle, statements)).results

        try:
            await self._go_through(program, ask)
        except _LeftBehind:
            if self.chance.random() < 0.8:
                await self.http.end_transaction(front, handle)
            raise
        program.name = front.name_of_commit(handle)
        program.handle = handle
        version, affected = await self.http.commit(front, handle)
        program.affected = affected - 1
        return Outcome(version, version)

    async def _ask_again(
        self, service: Service, program: Program, error: QserverError
    ) -> int | QserverError:
        """Ask for the lost answer of a commit until there is one, or nobody knows it."""
        if program.handle is None:
            return error
        handle = program.handle
        if self.chance.random() < 0.2:
            return error

        async def post(front: Front) -> Outcome:
            version, _ = await self.http.commit(front, handle)
            return Outcome(version, version)

        for _ in range(ASKED_AGAIN_MOST):
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 5)
            try:
                version = (await service.repeat(post)).version
            except (SerializationFailure, TransactionNotFound) as found:
                service.world.reach("the commit of an open transaction was asked for again")
                return found
            except QserverError as again:
                self._judge_error(service, again, ())
            else:
                service.world.reach("the commit of an open transaction was asked for again")
                return version
        return error

    # --- the replay ---

    async def check_rows(self, service: Service) -> None:
        found = await self.must(service, "SELECT number FROM programs ORDER BY number")
        there = [row[0] for row in found.rows]
        self.problems += self.book.compare(there, service)
        contents: list[Contents] = []
        await self.complain(service, lambda each: self._replay(each, set(there), contents))
        if contents:
            await self.complain(service, lambda each: _least_differences(each, contents))

    def _replay(
        self, transaction: Transaction, there: set[int], at_last: list[Contents]
    ) -> list[str]:
        problems = []
        opened: dict[int, list[Program]] = {}
        committed: dict[int, list[Program]] = {}
        for program in self.programs.values():
            if program.opened is not None:
                opened.setdefault(program.opened, []).append(program)
            answer = find_answer(transaction, program.name, 0.0) if program.name else None
            if program.number not in there:
                continue
            if answer is None or self.told.get(program.number, answer.version) != answer.version:
                told = self.told.get(program.number)
                problems.append(f"{program.number} is there, told {told}, answered {answer}")
            else:
                committed.setdefault(answer.version, []).append(program)
        if problems:
            return problems
        possible: list[Contents] = [dict.fromkeys(TABLES, ModelTable())]
        """Programs of one version may have come in several orders that answer them alike."""
        for version in sorted({*opened, *committed}):
            together = committed.get(version, [])
            after = [each for contents in possible for each in _followed(contents, together)]
            if not after:
                why = "; ".join(_told(each, possible[0]) for each in together)
                return [*problems, f"version {version} does not follow: {why}"]
            possible = _distinct(after)
            for program in opened.get(version, []):
                fitting = [each for each in possible if _run(program, each) is not None]
                if not fitting:
                    problems.append(f"opened at {version}: {_told(program, possible[0])}")
                possible = fitting or possible
        at_last += possible
        return problems


def _run(program: Program, contents: Contents) -> ModelSession | None:
    """Run a program over these contents; None if it gets another answer."""
    session = ModelSession(contents)
    for step, answer in program.steps:
        if answer is None:
            session.failed = True
        elif session.run(step) != answer:
            return None
    return session


def _followed(contents: Contents, programs: list[Program]) -> Iterator[Contents]:
    """Yield the contents after all programs, for each order that gives them their answers."""
    if not programs:
        yield contents
    for at, program in enumerate(programs):
        session = _run(program, contents)
        if session is not None and program.affected in (None, session.affected):
            yield from _followed(session.contents, programs[:at] + programs[at + 1 :])


def _distinct(possible: list[Contents]) -> list[Contents]:
    return [each for at, each in enumerate(possible) if each not in possible[:at]]


def _told(program: Program, contents: Contents) -> str:
    """Tell where a program gets another answer from the model."""
    session = ModelSession(contents)
    done: list[str] = []
    for step, answer in program.steps:
        done += [f"{each.sql} {each.statement.parameters or ''}" for each in step]
        if answer is None:
            session.failed = True
            done.append("(a fault)")
        elif (expected := session.run(step)) != answer:
            return f"program {program.number}, {done}: got {answer}, the model says {expected}"
    return f"program {program.number} affected {program.affected}, not {session.affected}: {done}"


def _least_differences(transaction: Transaction, possible: list[Contents]) -> list[str]:
    return min((_differences(transaction, each) for each in possible), key=len)


def _differences(transaction: Transaction, contents: Contents) -> list[str]:
    tables = transaction.snapshot.catalog.tables
    problems = []
    for name in TABLES:
        table, expected = tables.get(name), contents.get(name)
        if table is None or expected is None:
            if table is not None or expected is not None:
                problems.append(f"{name} is {table}, the model has {expected}")
            continue
        rows = tuple(row for _, page in transaction.scan(table.id) for row in page)
        columns = tuple(column.name for column in table.columns)
        indexes = {index.name: index.unique for index in table.indexes}
        there = ModelTable(columns, expected.default, {row[0]: row for row in rows}, indexes)
        if there != expected:
            problems.append(f"{name} is {there}, the model has {expected}")
    return problems
