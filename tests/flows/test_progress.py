"""Progress: shares and time left, few lines in a file, one redrawn line on a terminal."""

import io

from locpipe.flows.progress import Progress, Snapshot, log_lines, terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(progress: Progress, blocks: int, done: int = 0) -> None:
    with progress.stage("counting", blocks, done) as advance:
        for _ in range(blocks - done):
            advance()


def test_listeners_see_every_block_and_the_share() -> None:
    seen: list[Snapshot] = []
    progress = Progress(2, seen.append)
    run(progress, 4)
    run(progress, 4, done=3)
    assert [s.done for s in seen] == [0, 1, 2, 3, 4, 3, 4]
    assert [round(s.share, 3) for s in seen][-3:] == [0.5, 0.875, 1.0]
    assert seen[0].seconds_left is None
    assert seen[-1].seconds_left == 0


def test_a_stage_without_blocks_is_done_at_its_end() -> None:
    seen: list[Snapshot] = []
    with Progress(1, seen.append).stage("thinking"):
        assert [s.finished for s in seen] == [False]
    assert [s.finished for s in seen] == [False, True]


def test_lines_in_a_file() -> None:
    stream = io.StringIO()
    progress = Progress(2, terminal(stream))
    run(progress, 4)
    with progress.stage("thinking"):
        pass
    assert stream.getvalue() == (
        "[1/2] counting: 0 of 4 (0%)\n[1/2] counting: 4 of 4 (100%)\n[2/2] thinking\n"
    )


def test_one_line_on_a_terminal() -> None:
    stream = Terminal()
    run(Progress(1, terminal(stream)), 3)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\r\x1b[K[1/1] counting: 3 of 3 (100%)\n")


def test_a_log_gets_every_quarter() -> None:
    lines: list[str] = []
    progress = Progress(3, log_lines(lines.append, clock=lambda: 0.0))
    run(progress, 40)
    with progress.stage("thinking"):
        pass
    run(progress, 2, done=2)
    assert [line.split(" (")[0] for line in lines] == [
        *(f"[1/3] counting: {done} of 40" for done in (0, 10, 20, 30, 40)),
        "[2/3] thinking",
        "[3/3] counting: 2 of 2",
    ]


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    lines: list[str] = []
    seconds = iter(range(0, 1000, 4))  # each block takes longer than the last look at the clock
    run(Progress(1, log_lines(lines.append, clock=lambda: float(next(seconds)))), 100)
    done = [int(line.split(": ")[1].split()[0]) for line in lines]
    assert done[:4] == [0, 3, 6, 9]
    assert {25, 50, 75, 100} <= set(done)


def test_text_of_a_snapshot() -> None:
    assert str(Snapshot(2, 7, "scaling", 1, 5, 8.4)) == (
        "[2/7] scaling: 1 of 5 (20%), about 8 s left"
    )
