"""How many rounds a block must have: a fixed number, or as many as make its cells known well enough."""

from tare.cases import BASELINE, Arm, Block
from tare.config import Mapping, Repeats
from tare.precision import may_stop
from tare.records import Store, counted, paired_rounds, read_records


def rounds_wanted(store: Store, block: Block, arms: tuple[Arm, ...], plans: dict[str, str], study: Mapping) -> int:
    """Return how many paired rounds each of the arms must have, judged by what is on record.

    With adaptive repeats: at least ``min``; arms that lost records are first brought to where the others are; then one round
    more than there are, until the block is precise enough or has ``max``. The records alone decide, so a killed job goes on
    where it was, and a study that asks for more precision than it has measures on.
    """
    repeats = Repeats.of(study["repeats"])
    if repeats.until is None:
        return repeats.most
    valid = {arm.name: counted(read_records(store.records(block.setting.id, arm.name)), plans[arm.name]) for arm in arms}
    partners = {arm.name: arm.baseline for arm in arms}
    compared = [name for name in valid if name != partners[name]] or list(valid)
    pairs = [len(paired_rounds(valid[name], valid.get(partners[name], []))) for name in compared]
    reached = max(repeats.least, *pairs, 0)
    if reached >= repeats.most or min(pairs, default=reached) < reached:
        return reached
    times = {
        name: {(record["session"], record["round"]): record["wall_s"] for record in records if record["status"] == "ok"}
        for name, records in valid.items()
    }
    enough = [may_stop(beside(times, partners, native), repeats.until, study["confidence"]) for native in set(partners.values())]
    return reached if all(enough) else reached + 1


def beside(times: Mapping, partners: dict[str, str], native: str) -> Mapping:
    """Return the times of the arms that are paired with one native arm, which is called native among them."""
    paired = {name: found for name, found in times.items() if partners[name] == native and name != native}
    return {**paired, BASELINE: times[native]} if native in times else paired
