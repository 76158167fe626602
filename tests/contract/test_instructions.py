"""What the owner tells all machines of a crawl."""

from __future__ import annotations

from rove.frontier.runs import Vitals
from rove.model.instructions import Instruction, InstructionKind, Instructions
from tests.contract.harness import Harness


async def test_instructions_are_read_back_until_they_are_withdrawn_or_replaced(harness: Harness) -> None:
    await harness.open()
    catalog = harness.catalog()
    assert await catalog.instructions() == Instructions()
    await catalog.instruct(InstructionKind.PAUSE, None)
    assert await catalog.instructions() == Instructions()
    pause = Instruction(who="ann's \u201chost\u201d", at=12.5)
    first, second = Instruction(who="bob", at=13.0), Instruction(who="bob", at=13.0)
    assert first != second, "two instructions of one moment differ"
    await catalog.instruct(InstructionKind.PAUSE, pause)
    await catalog.instruct(InstructionKind.STOP, first)
    assert await catalog.instructions() == Instructions(stop=first, pause=pause)
    await catalog.instruct(InstructionKind.STOP, second)
    await catalog.instruct(InstructionKind.PAUSE, None)
    assert await catalog.instructions() == Instructions(stop=second)


async def test_a_process_says_whether_it_is_paused(harness: Harness) -> None:
    first, second = await harness.open(), await harness.open()
    await first.note_alive(Vitals(is_paused=True, in_flight=3))
    await second.note_alive(Vitals())
    said = {process.process: process.is_paused for process in await harness.reader().participants()}
    assert said == {first.process: True, second.process: False}
    await first.note_alive(Vitals())
    assert not any(process.is_paused for process in await harness.reader().participants())
