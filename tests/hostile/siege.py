"""A real server under attack, with a heartbeat beside it.

    server process ◄── attackers, some at a time: one attack after the other
          ▲
          └────────── heartbeat, another process: a point query every 10 ms

What must hold, whatever the attackers send: every beat is answered right, after at most a quarter
of a second of the server's own processor time; every attack ends within a second of its deadline;
nothing ends in an internal error; the process stays within its memory.

These are figures of a machine of its own. On another one, a test judges by processor time alone, in
steps of known work that are measured between the attacks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from statistics import median
from typing import Final

from tests.hostile import heartbeat
from tests.hostile.attacks import SETUP, TIMEOUT_MS, Attack, Attacker
from tests.known_work import STEP_SECONDS, step_seconds
from tests.web.contract.servers import Client, Server, start

KEY: Final = "svc_k_hostile_0123456789"
ATTACKERS: Final = 2
"""At once, where nothing else is asked for."""

TRIES: Final = 200
"""How often a table is made, while attacks hold the memory."""

LOOP_SECONDS_MOST: Final = 0.25
"""Of processor time that a point query may wait for."""

LATE_SECONDS_MOST: Final = 1.0
"""After its deadline an attack must be over."""

MEMORY_BYTES_MOST: Final = 1_500_000_000


@dataclass(frozen=True)
class Beat:
    at: float
    seconds: float
    loop_seconds: float
    """Of processor time that the server's loop used until it answered."""
    status: int
    name: str = "read"

    @classmethod
    def read(cls, line: str) -> Beat:
        """From what the heart prints."""
        name, at, seconds, loop_seconds, status = line.split()
        return cls(float(at), float(seconds), float(loop_seconds), int(status), name)


def beats_in(lines: Iterable[str]) -> Iterator[Beat]:
    """From what a heart prints until it is killed, perhaps in the midst of a line."""
    return (Beat.read(line) for line in lines if line.endswith("\n"))


@dataclass(frozen=True)
class Fought:
    """An attack that is over."""

    name: str
    outcome: str
    began: float
    seconds: float
    server_seconds: float = 0.0
    """Of processor time that the server used meanwhile, for whomever."""


@dataclass
class Report:
    fought: list[Fought] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    paces: list[float] = field(default_factory=list)
    """What a step of known work took between the attacks."""
    memory_bytes: int = 0
    stalls: int = 0
    last_words: str = ""
    """Of a server that did not live to the end."""

    def worst_beat(self) -> Beat:
        return max(self.beats, key=lambda beat: beat.loop_seconds)

    def slowest(self) -> Fought:
        return max(self.fought, key=lambda fought: fought.seconds)

    def slowness(self) -> float:
        """How many times as long known work took here."""
        return median(self.paces) / STEP_SECONDS

    def problems_in_steps(self, patience: float) -> list[str]:
        """What must not be on any machine: times are judged by the server's processor time, and
        are allowed `patience` times as much as known work took here."""
        by_processor = [
            replace(fought, seconds=fought.server_seconds / ATTACKERS) for fought in self.fought
        ]
        return replace(self, fought=by_processor).problems(patience * self.slowness())

    def problems(self, patience: float = 1.0) -> list[str]:
        """What must not be; times are allowed `patience` times as much."""
        found = [
            f"a beat was answered with {beat.status}" for beat in self.beats if beat.status != 200
        ]
        worst = self.worst_beat()
        if worst.loop_seconds > LOOP_SECONDS_MOST * patience:
            found.append(
                f"a beat waited for {worst.loop_seconds:.2f} s of processor time"
                f" during {self.during(worst)}"
            )
        for fought in self.fought:
            if fought.seconds > (TIMEOUT_MS / 1000 + LATE_SECONDS_MOST) * patience:
                found.append(f"{fought.name} took {fought.seconds:.1f} s")
            if fought.outcome in ("XX000", "timed out") or "500" in fought.outcome:
                found.append(f"{fought.name} ended in {fought.outcome}")
        if self.last_words:
            found.append(f"the server died: {self.last_words}")
        if self.memory_bytes > MEMORY_BYTES_MOST:
            found.append(f"the server took {self.memory_bytes / 1e6:.0f} MB")
        return found

    def during(self, beat: Beat) -> str:
        """The attacks that were under way while a beat waited."""
        names = [
            fought.name
            for fought in self.fought
            if fought.began < beat.at and fought.began + fought.seconds > beat.at - beat.seconds
        ]
        return ", ".join(names) or "none"

    def __str__(self) -> str:
        worst, slowest = self.worst_beat(), self.slowest()
        longest = max(self.beats, key=lambda beat: beat.seconds)
        return "\n".join(
            (
                f"{len(self.fought)} attacks, {len(self.beats)} beats beside them",
                f"worst beat: {worst.loop_seconds * 1000:.0f} ms of the loop's processor time"
                f" ({worst.seconds * 1000:.0f} ms on the clock) during {self.during(worst)}",
                f"longest on the clock: {longest.seconds * 1000:.0f} ms"
                f" during {self.during(longest)}",
                f"slowest attack: {slowest.name}, {slowest.seconds:.1f} s ({slowest.outcome})",
                f"peak memory: {self.memory_bytes / 1e6:.0f} MB; stalls of a second: {self.stalls}",
            )
        )


class Siege:
    """Call `run` once."""

    def __init__(
        self,
        folder: Path,
        tell: Callable[[str], None] = lambda line: None,
        attackers: int = ATTACKERS,
    ) -> None:
        self._folder = folder
        self._attackers = attackers
        self._tell = tell
        self._report = Report()
        self._waiting: Queue[Attack] = Queue()

    def run(self, attacks: Sequence[Attack], seconds: float = float("inf")) -> Report:
        """Send the attacks, as many as there is time for."""
        server = start("own", self._folder, {"QSERVER_API_KEY": KEY})
        try:
            admin = Client(server, KEY)
            admin.query("create table beats (id int primary key, name text)")
            admin.query("insert into beats select n, 'seven' from generate_series(1, 1000) as n")
            for number in range(self._attackers):
                admin.post("/v1/databases", {"name": f"attacker-{number}"})
            for attack in attacks:
                self._waiting.put(attack)
            self._fight(server, time.monotonic() + seconds)
            if server.process.poll() is not None:
                self._report.last_words = server.output[-2000:]
                return self._report
            self._report.memory_bytes = peak_memory_bytes(server.process.pid)
            self._report.stalls = int(metric(admin, "qserver_loop_stalls_total"))
            assert server.stop() == 0, server.output
        finally:
            server.kill()
        return self._report

    def _fight(self, server: Server, until: float) -> None:
        command = [sys.executable, heartbeat.__file__, server.url, KEY, str(server.process.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as heart:
            listening = threading.Thread(target=self._listen, args=(heart,))
            listening.start()
            threads = [
                threading.Thread(target=self._attack, args=(server, number, until))
                for number in range(self._attackers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            heart.kill()
            listening.join()

    def _listen(self, heart: subprocess.Popen[str]) -> None:
        assert heart.stdout is not None
        self._report.beats.extend(beats_in(heart.stdout))

    def _attack(self, server: Server, number: int, until: float) -> None:
        database = f"attacker-{number}"
        attacker = Attacker(("127.0.0.1", server.port), KEY, database)
        admin = Client(server, KEY, database=database)
        changed = True
        while time.monotonic() < until:
            if server.process.poll() is not None:
                return
            try:
                attack = self._waiting.get_nowait()
            except Empty:
                return
            for sql in SETUP if changed else ():
                _set_up(admin, sql)
            changed = attack.changes
            began, used = time.monotonic(), processor_seconds(server.process.pid)
            try:
                outcome = attack.send(attacker)
            except OSError as error:
                outcome = str(error)
            used = processor_seconds(server.process.pid) - used
            fought = Fought(attack.name, outcome, began, time.monotonic() - began, used)
            self._report.fought.append(fought)
            self._report.paces.append(step_seconds())
            self._tell(
                f"{len(self._report.fought)} {attack.name}: {outcome} {fought.seconds:.1f} s"
            )


def _set_up(admin: Client, sql: str) -> None:
    """Run a statement; again while others hold all memory that there is for statements."""
    for _ in range(TRIES):
        answer = admin.query_response(sql).json()
        if answer["success"]:
            return
        assert answer["error"]["code"] == "53200", answer
        time.sleep(0.1)
    raise AssertionError("the memory was never given back")


def metric(admin: Client, name: str) -> float:
    for line in admin.get("/metrics").text.splitlines():
        if line.startswith(name):
            return float(line.split()[-1])
    raise AssertionError(f"/metrics has no {name}")


def processor_seconds(pid: int) -> float:
    """Of all threads of a process; none if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not tell the peak of memory")
