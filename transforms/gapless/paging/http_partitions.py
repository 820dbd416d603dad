"""The list of partitions: as the job file names them, or as an endpoint does, with its routing generation
and proofs."""

from collections.abc import Mapping, Sequence

from gapless.errors import InvalidPage
from gapless.paging.http_config import HttpPartitions, ListedPartitionConfig, PartitionsConfig
from gapless.paging.http_pages import BoundReader, find, generation_at
from gapless.paging.json_path import JsonPath, PathAbsentError, describe
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.progress import Domain, KeyRange


def listed_in_job(config: PartitionsConfig) -> Assignment:
    """The assignment that `partitions.list` spells out."""
    return Assignment([ListedPartition(_configured(one)) for one in config.list_ or ()])


def _configured(one: str | int | ListedPartitionConfig) -> Partition:
    if isinstance(one, ListedPartitionConfig):
        return Partition(str(one.id), dict(one.model_extra or {}))
    return Partition(str(one), {})


class PartitionListReader:
    """Reads what `partitions.http` answers. Stateless after construction."""

    def __init__(self, config: HttpPartitions, domain: Domain) -> None:
        self._items = JsonPath.parse(config.items)
        self._id = JsonPath.parse(config.id)
        self._generation = (
            None if config.routing_generation is None else JsonPath.parse(config.routing_generation)
        )
        self._complete = None if config.list_complete is None else BoundReader(config.list_complete, domain)
        self._sealed = None if config.sealed is None else BoundReader(config.sealed, domain)
        self._successors = None if config.successors is None else JsonPath.parse(config.successors)
        self._parents = None if config.parents is None else JsonPath.parse(config.parents)
        self._key_range = (
            None
            if config.key_range is None
            else (JsonPath.parse(config.key_range.low), JsonPath.parse(config.key_range.high))
        )
        self._consumed = _top_names(config)

    @property
    def names_generation(self) -> bool:
        return self._generation is not None

    def generation(self, value: object, where: str) -> str:
        """The routing generation the list states; "" where the job file names no place for one. Raises
        InvalidPage."""
        return "" if self._generation is None else generation_at(self._generation, value, where)

    def assignment(self, value: object, where: str) -> Assignment:
        """Raises InvalidPage: a partition without an id or listed twice, an absent path."""
        items = find(self._items, value, where, "partitions.http.items")
        if not isinstance(items, list):
            raise self._refusal(
                f"`{self._items.text}` is {describe(items)}, not an array of partitions", where
            )
        partitions = [self._listed(item, f"{where}, [{index}]") for index, item in enumerate(items)]
        _require_each_once([one.partition.id for one in partitions], where)
        return Assignment(
            partitions,
            self.generation(value, where),
            None if self._complete is None else self._complete.bound(value, where),
        )

    def _listed(self, item: object, where: str) -> ListedPartition:
        found = find(self._id, item, where, "partitions.http.id")
        if type(found) not in (str, int) or found == "":
            raise self._refusal(
                f"`{self._id.text}` is {describe(found)}; a partition's id is a text or an integer", where
            )
        fields = item if isinstance(item, Mapping) else {}
        return ListedPartition(
            Partition(
                str(found), {name: field for name, field in fields.items() if name not in self._consumed}
            ),
            seal=None if self._sealed is None else self._sealed.bound(item, where),
            successors=_names(self._successors, item, where),
            parents=_names(self._parents, item, where),
            key_range=self._keys(item, where),
        )

    def _keys(self, item: object, where: str) -> KeyRange | None:
        if self._key_range is None:
            return None
        low, high = (find(path, item, where, "partitions.http.key_range") for path in self._key_range)
        for path, end in zip(self._key_range, (low, high), strict=True):
            if end is not None and type(end) not in (str, int):
                raise self._refusal(
                    f"`{path.text}` is {describe(end)}; an end of a range of keys is a text, an integer or null",
                    where,
                )
        if low is not None and high is not None and (type(low) is not type(high) or not low < high):  # type: ignore[operator]
            raise self._refusal(f"the range of keys from {low!r} to {high!r} holds no key", where)
        return KeyRange(low, high)  # type: ignore[arg-type]

    @staticmethod
    def _refusal(what: str, where: str) -> InvalidPage:
        return InvalidPage(
            what, where=where, remedy="correct partitions.http in the job file, or what the source lists"
        )


def _top_names(config: HttpPartitions) -> frozenset[str]:
    """The members of an item that are read into their own places, and so are no fields of the partition."""
    texts = [config.id, config.successors, config.parents]
    if config.key_range is not None:
        texts += [config.key_range.low, config.key_range.high]
    if config.sealed is not None:
        position = config.sealed.position
        texts += [position] if isinstance(position, str) else position
        texts.append(config.sealed.inclusive if isinstance(config.sealed.inclusive, str) else None)
    paths = [JsonPath.parse(text) for text in texts if text is not None]
    return frozenset(path.steps[0] for path in paths if path.steps and isinstance(path.steps[0], str))


def _names(path: JsonPath | None, item: object, where: str) -> tuple[str, ...] | None:
    """Partition names at a place where both absent and null mean unknown."""
    if path is None:
        return None
    try:
        names = path.find(item)
    except PathAbsentError:
        return None
    if names is None:
        return None
    if not isinstance(names, list) or any(type(name) not in (str, int) or name == "" for name in names):
        raise InvalidPage(f"`{path.text}` is {describe(names)}, not an array of partition names", where=where)
    return tuple(str(name) for name in names)


def _require_each_once(ids: Sequence[str], where: str) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise InvalidPage(
                f"partition {name!r} is listed twice",
                where=where,
                remedy="each partition has one id, and each id one",
            )
        seen.add(name)
