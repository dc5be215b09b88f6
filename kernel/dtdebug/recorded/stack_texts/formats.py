"""Reads the stacks of a text: of py-spy, faulthandler, gdb, pstack, eu-stack, pystack, and Python's tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dtdebug.recorded.stack_texts.processes import TextProcess, TextThread

FRAMES = 256
"""Maximum number of frames kept of a thread, the innermost ones."""
_THREADS = 512
_ASKED = re.compile(
    r"(?:\S{0,80}[$#>] |\+ )(?:sudo )?(?:py-spy dump|pystack remote|gdb)\b"
    r"(?:.{0,200}?\b(?:RANK|rank)[= ](?P<rank>\d{1,7})\b)?"
)
"""Command at a prompt that printed what follows; a comment may say of which rank."""
_PROCESS = re.compile(r"Process (?P<pid>\d{1,9}): (?P<command>.{0,2000})")
_OF_RAY = re.compile(r"Stack dump for \S{1,64}\s{1,12}(?P<pid>\d{1,9})\s(?P<command>.{0,2000})")
_PID = re.compile(
    r"(?:[=#*-]{1,40}\s{0,4})?(?:PID|pid|Pid|process|Process|Attaching to process)[ :=#]{1,3}(?P<pid>\d{1,9})"
    r"(?:\s{0,4}[=#*-]{1,40}|:| - process)?\s*\Z"
)
_RANK = re.compile(
    r"(?:<h\d>|[=#*\[( -]{0,40})\s{0,4}(?:global[ _-]?)?(?:rank|worker)[ _=:#-]{0,3}(?P<rank>\d{1,6})\b"
    r"(?:: ?(?P<place>[\w.:/-]{1,100}))?[^\w\n]{0,60}(?:</h\d>)?\s*\Z",
    re.IGNORECASE,
)
"""Heading of a rank: `=== Rank 3: http://host:1 ===` of PyTorch's debug server, `====== rank 3 ======`."""
_BANNER = re.compile(r"([=#*-])\1{2,40}\s?(?P<says>[^=#*\n]{4,200}?)\s?\1{3,40}\s*\Z")
_IN_BANNER = re.compile(
    r"(?i)\b(?:(?P<what>(?:global[ _-]?)?rank|pid)[ _=:#-]{1,3}(?P<number>\d{1,9})(?!\d)"
    r"|(?:host|node)[ =:]{1,3}(?P<host>[\w.-]{1,80}))"
)
"""Words of a heading that names more than one thing: `===== host a12 pid 4001 rank 0 =====`."""
_HOST = re.compile(
    r"[=#*\[( -]{0,40}\s{0,4}(?:node|host(?:name)?|machine)(?:\s{0,3}[:=#]\s{0,3}|\s{1,3}|(?=\d))"
    r"(?P<host>[\w.-]{1,80}?)\s{0,4}[=#*\]):-]{0,40}\s*\Z",
    re.IGNORECASE,
)
_SPY_THREAD = re.compile(
    r'\s{0,4}Thread (?:(?P<id>(?:0x)?[0-9a-fA-F]{1,16}) )?\([^)]{1,40}\)(?:: "(?P<name>[^"]{0,100})")?\s*\Z'
)
_FAULT = re.compile(
    r"(?P<current>Current thread|Thread) 0x(?P<id>[0-9a-fA-F]{4,16}).{0,80} \(most recent call first\):"
)
_FAULT_ENDS = re.compile(r"Timeout \(\d{1,4}:\d\d:\d\d(?:\.\d{1,9})?\)!|Fatal Python error: ")
_FILE = re.compile(
    r'\s{0,12}(?:\(Python\) )?File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9}),? in (?P<function>\S.{0,300})'
)
_GDB_THREAD = re.compile(
    r"Thread (?P<id>\d{1,6}) \((?:Thread 0x[0-9a-f]{1,16} )?\(?(?:LWP|process|LWPID) ?(?P<lwp>\d{1,9})\)?"
    r'(?: "(?P<name>[^"]{0,64})")?'
    r"|Thread (?P<id2>\d{1,6}) \(Thread 0x[0-9a-f]{1,16}"
)
_EU_THREAD = re.compile(r"TID (?P<lwp>\d{1,9}):\s*\Z")
_GDB_FRAME = re.compile(r"#(?P<n>\d{1,5})\s{1,4}(?:0x[0-9a-f]{1,16}(?: in)? )?(?P<rest>\S.{0,4000})")
_GDB_PYTHON = re.compile(
    r"[Ff]rame (?:0x[0-9a-f]{1,16}, )?for file (?P<file>[^,\n]{1,500}), line (?P<line>\d{1,9}), "
    r"in (?P<function>[^\s(]{1,200})"
)
_GDB_PID = re.compile(r"(?:Attaching to process |\[New process )(?P<pid>\d{1,9})")
_PYSTACK = re.compile(
    r"Traceback for thread (?P<lwp>\d{1,9})(?: \((?P<name>[^)]{0,100})\))?.{0,60}\(most recent call last\)"
)
_PYSTACK_C = re.compile(
    r'\s{2,8}\(C\) File "(?P<file>[^"]{0,500})", line (?P<line>\d{1,9}),? in (?P<function>\S.{0,300})'
)
_TRACEBACK = re.compile(r"\s{0,8}Traceback \(most recent call (?P<order>last|first)\):?\s*\Z")
_NATIVE = re.compile(r"\.(?:so[\w.]{0,20}|c|cc|cpp|cxx|cu|cuh|h|hpp|pyx|pxd|S|rs|dylib|dll|exe)\Z")
_SHORTENED = re.compile(
    r"(?:torch|(?:pytorch_)?lightning|accelerate|deepspeed|transformers|datasets|ray|horovod|megatron|vllm|sglang|numpy"
    r"|filelock|fsspec|requests|urllib3|tqdm|torchdata|click|safetensors|huggingface_hub|botocore|boto3|s3transfer|s3fs"
    r"|aiobotocore|aiohttp|httpx|httpcore|anyio|google/cloud|azure/(?:core|storage)|smart_open|wandb|mlflow|comet_ml"
    r"|clearml|neptune|redis|pymongo|psycopg2?|sqlalchemy|grpc|pyarrow|pandas|scipy|PIL|cv2|h5py|zarr|webdataset"
    r"|tensorboard|tensorboardX)/"
)
"""Path of a library as py-spy prints it, without the folder that it is installed in."""
_STANDARD = re.compile(
    r"(?:threading|queue|socket|ssl|selectors|subprocess|runpy|contextlib|pickle|copy|random|json|logging|weakref|os)\.py\Z"
    r"|(?:multiprocessing|concurrent/futures|asyncio|importlib|http|urllib|unittest)/"
)
_COMMENT = re.compile(r"(?<=\))\s{1,80}(?:<-|#|←).{0,200}\Z")
"""Remark that a person has written after a frame."""
_STARTS = (
    "Process ",
    "Thread ",
    "Current thread ",
    "Traceback ",
    "Stack dump for ",
    "TID ",
    "#",
    "Python v",
    "=== Rank",
)


def is_stack_line(line: str) -> bool:
    """True for lines that only a text with stacks has: heads of processes and threads, and frames."""
    if line.startswith(_STARTS):
        return bool(
            _PROCESS.match(line) or _SPY_THREAD.match(line) or _FAULT.match(line) or _GDB_THREAD.match(line)
            or _EU_THREAD.match(line) or _OF_RAY.match(line) or _PYSTACK.match(line) or _TRACEBACK.match(line)
            or (line.startswith("#") and _gdb_frame(line) is not None) or line.startswith("Python v")
        )  # fmt: skip
    return bool(line[:1] in " \t" and (_frame(line) is not None or _FILE.match(line) or _PYSTACK_C.match(line)))


def parse_lines(lines: Sequence[str]) -> list[TextProcess]:
    """Return the processes of a text, in its order; headings give hosts and ranks."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    return list(_parts(reader.done()))


class _Reader:
    """Reads line by line; a process begins where its head, or a thread of another one, does."""

    def __init__(self) -> None:
        self._found: list[TextProcess] = []
        self._now = TextProcess()
        self._thread: TextThread | None = None
        self._host, self._rank_host = "", ""
        self._rank: int | None = None
        self._outermost_first = False
        self._code = False
        self._waiting: list[TextProcess] = []
        """Processes whose stack is printed once, below the heads of all of them."""

    def take(self, line: str) -> None:  # noqa: PLR0912 - one branch for each kind of line
        if not line.strip():
            self._code = False
            return
        if line[:1] in " \t" and self._thread is not None and self._take_frame(line):
            return
        line = line.strip() if line[:1] in " \t" else line.rstrip()
        if line[0] == "#" and self._take_native(line):
            return
        if m := _PROCESS.match(line):
            if not (self._now.tool == "ray" and self._now.pid == int(m["pid"]) and not self._now.threads):
                self._begin("py-spy", pid=int(m["pid"]))
            self._now.tool, self._now.command = "py-spy", m["command"]
        elif m := _OF_RAY.match(line):
            self._begin("ray", pid=int(m["pid"]), command=m["command"])
        elif m := _SPY_THREAD.match(line):
            self._spy_thread(m["id"] or "", m["name"] or "")
        elif m := _FAULT.match(line):
            self._add("faulthandler", TextThread(number=m["id"], current=m["current"] != "Thread"))
        elif m := _PYSTACK.match(line):
            self._add("pystack", TextThread(number=m["lwp"], lwp=int(m["lwp"]), name=m["name"] or ""), last=True)
        elif m := _GDB_THREAD.match(line):
            lwp = int(m["lwp"]) if m["lwp"] else None
            self._add("gdb", TextThread(number=m["id"] or m["id2"], lwp=lwp, name=m["name"] or ""))
        elif m := _EU_THREAD.match(line):
            self._add("eu-stack", TextThread(number=m["lwp"], lwp=int(m["lwp"])))
        elif m := _TRACEBACK.match(line):
            self._traceback(m["order"])
        elif _FAULT_ENDS.match(line):
            self._begin("faulthandler")
        elif (m := _BANNER.match(line)) and len(said := [*_IN_BANNER.finditer(m["says"])]) > 1:
            self._banner(said)
        elif m := _GDB_PID.match(line) or _PID.match(line):
            if self._now.pid != int(m["pid"]) or self._now.threads:
                self._begin("", pid=int(m["pid"]))
        elif m := _RANK.match(line):
            self._rank, self._rank_host = int(m["rank"]), _host_of(m["place"] or "")
            self._begin("")
        elif m := _ASKED.match(line):
            self._rank, self._rank_host = (int(m["rank"]) if m["rank"] else None), ""
            self._begin("")
        elif m := _HOST.match(line):
            self._host, self._rank = m["host"], None
            self._begin("")

    def _banner(self, said: Sequence[re.Match[str]]) -> None:
        """Begin the process that a heading names by several words."""
        numbers = {m["what"].lower()[-4:]: int(m["number"]) for m in said if m["what"]}
        self._host = next((m["host"] for m in said if m["host"]), self._host)
        self._rank, self._rank_host = numbers.get("rank"), ""
        self._begin("", pid=numbers.get("pid"))

    def done(self) -> list[TextProcess]:
        self._begin("")
        return self._found

    def _begin(self, tool: str, *, pid: int | None = None, command: str = "") -> None:
        for other in self._waiting:
            other.threads[-1:] = [*self._now.threads[-1:]]
            self._found.append(other)
        self._waiting = []
        if self._now.threads:
            self._found.append(self._now)
        self._now = TextProcess(
            tool=tool, pid=pid, command=command, host=self._rank_host or self._host, rank=self._rank
        )
        self._thread, self._outermost_first = None, False

    def _add(self, tool: str, thread: TextThread, *, last: bool = False) -> None:
        """Add a thread; to a new process if this one can't have it too."""
        numbers = self._now.numbers
        ends = tool == "gdb" and len(numbers) > 1 and next(reversed(numbers)) == "1" != next(iter(numbers))
        if (self._now.threads and self._now.tool != tool) or thread.number in numbers or ends:
            again = thread.number in numbers and tool != "gdb"
            self._begin(tool, pid=self._now.pid if again else None, command=self._now.command if again else "")
        self._now.tool = tool
        if len(self._now.threads) < _THREADS:
            self._now.threads.append(thread)
            if thread.number:
                self._now.numbers[thread.number] = None
        self._thread, self._outermost_first, self._code = thread, last, False

    def _spy_thread(self, number: str, name: str) -> None:
        is_main = name == "MainThread"
        if is_main and any(t.name == name for t in self._now.threads):
            if not self._thread or not (self._thread.frames or self._thread.native):
                waiting, self._now = self._now, TextProcess(tool="py-spy", host=self._now.host, rank=self._now.rank)
                self._waiting.append(waiting)
                self._thread = None
            else:
                self._begin("py-spy")
        pid = int(number) if number.isdecimal() and len(number) < 9 else None
        if is_main and self._now.pid is None:
            self._now.pid = pid
        self._add("py-spy", TextThread(name=name, number=number, lwp=pid))

    def _traceback(self, order: str) -> None:
        """Begin a traceback of Python; below a thread of gdb it is its Python stack."""
        if self._now.tool != "gdb" or self._thread is None:
            self._begin("traceback")
            self._add("traceback", TextThread(number="1"))
        self._outermost_first = order == "last"

    def _take_frame(self, line: str) -> bool:
        thread = self._thread
        assert thread is not None  # noqa: S101 - asked by the caller
        if m := _PYSTACK_C.match(line):
            thread.native.append(m["function"])
            return True
        if m := _FILE.match(line):
            self._keep(thread, m["file"], int(m["line"]), m["function"])
            self._code = True
            return True
        found = _frame(line)
        if found is None:
            if self._code and thread.frames and self._now.tool in ("traceback", "pystack"):
                at = 0 if self._outermost_first else -1
                file, number, function, _ = thread.frames[at]
                thread.frames[at] = (file, number, function, line.strip()[:200])
            self._code = False
            return self._now.tool == "py-spy"  # arguments and local variables
        function, file, at_line = found
        if at_line is None or _NATIVE.search(file):
            if not thread.frames and len(thread.native) < FRAMES:
                thread.native.append(function[:200])
        else:
            self._keep(thread, file, at_line, function)
        return True

    def _keep(self, thread: TextThread, file: str, line: int, function: str) -> None:
        frame = (_whole(file), line, function.rstrip().rpartition(".")[2][:200], "")
        if self._outermost_first:
            thread.frames.insert(0, frame)
            del thread.frames[FRAMES:]
        elif len(thread.frames) < FRAMES:
            thread.frames.append(frame)

    def _take_native(self, line: str) -> bool:
        frame = _gdb_frame(line)
        if frame is None:
            return False
        if self._thread is None or (line.startswith("#0 ") and (self._thread.native or self._thread.frames)):
            self._add("gdb", TextThread(number="1" if self._thread is None else f"{id(line)}"))
        thread = self._thread
        assert thread is not None  # noqa: S101 - just added
        if m := _GDB_PYTHON.search(line):
            self._keep(thread, m["file"].strip("\"'"), int(m["line"]), m["function"])
        elif not thread.frames and len(thread.native) < FRAMES:
            thread.native.append(frame)
        return True


def _gdb_frame(line: str) -> str | None:
    """Return the function of a frame of gdb, pstack or eu-stack, without its arguments."""
    m = _GDB_FRAME.match(line)
    if m is None:
        return None
    rest = m["rest"].replace("(anonymous namespace)", "{anonymous}")
    name = rest.partition(" (")[0] if " (" in rest else rest.partition(" from ")[0].partition(" at ")[0]
    if not (" (" in rest or " from " in rest or "0x" in line):
        return None
    name = name.partition("(")[0] if name.endswith(")") else name
    return name.removeprefix("in ").strip()[:200] or "??"


def _frame(line: str) -> tuple[str, str, int | None] | None:
    """Return (function, file, line or None) of a frame of py-spy."""
    text = _COMMENT.sub("", line.strip())
    at = text.rfind(" (")
    if at < 1 or not text.endswith(")") or len(text) > 20_000:
        return None
    function, place = text[:at], text[at + 2 : -1]
    file, colon, number = place.rpartition(":")
    if colon and number.isascii() and number.isdecimal() and len(number) < 10 and file:
        return (function, file, int(number)) if " " not in file or "/" in file or file[0] == "<" else None
    if ".so" in place or place.endswith((".dylib", ".dll", ".exe")) or "/" in place or place.startswith("python"):
        return (function, place, None) if " " not in place else None
    return None


def _whole(file: str) -> str:
    """Return a path as if the tool had not shortened it: packages and the standard library lie below their folders."""
    if _SHORTENED.match(file):
        return f"/site-packages/{file}"
    return f"/lib/python3/{file}" if _STANDARD.match(file) else file


def _host_of(place: str) -> str:
    """Return the host of an address: `http://node1:2345`."""
    return place.partition("://")[2].rpartition(":")[0] if "://" in place else place.partition(":")[0]


def _parts(found: Sequence[TextProcess]) -> Iterator[TextProcess]:
    """Yield the processes; several dumps of faulthandler that follow each other are taken apart.

    Each dump ends with the oldest thread, which is the main one, and names one thread the current one.
    """
    for process in found:
        marks = [n for n, t in enumerate(process.threads) if t.current]
        if process.tool != "faulthandler" or len(marks) < 2:
            yield process
            continue
        begin = 0
        for mark in marks:
            part = TextProcess(**{k: getattr(process, k) for k in ("tool", "pid", "rank", "host", "command", "file")})
            part.threads = process.threads[begin : mark + 1]
            begin = mark + 1
            yield part
