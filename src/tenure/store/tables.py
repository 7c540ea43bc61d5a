"""The tables as they are now, and the statements over them. A later version writes a table's current shape here; V1 stays as it is."""

from typing import Final

from sqlalchemy import Integer, Table, Text, bindparam, delete, func, insert, select, update

from tenure.store.migrations import V1, V2, V3, V4, V5

conversation: Final[Table] = V3.tables["conversation"]
entry: Final[Table] = V1.tables["entry"]
commit_log: Final[Table] = V3.tables["commit_log"]
usage: Final[Table] = V2.tables["usage"]
aside: Final[Table] = V2.tables["aside"]
hold: Final[Table] = V1.tables["hold"]
client_link: Final[Table] = V4.tables["client_link"]
store_key: Final[Table] = V5.tables["store_key"]

_of: Final = bindparam("of", type_=Text())
_start: Final = bindparam("start", type_=Integer())
_stop: Final = bindparam("stop", type_=Integer())

# Columns in the order in which rows.py reads and writes them.
CONVERSATION: Final = select(conversation).where(conversation.c.id == _of)
CONVERSATIONS: Final = (
    select(conversation).where(conversation.c.tenant == _of).order_by(conversation.c.created.desc(), conversation.c.id.desc())
)
ALL_CONVERSATIONS: Final = select(conversation).order_by(conversation.c.created.desc(), conversation.c.id.desc())
CONVERSATION_IDS: Final = select(conversation.c.id).order_by(conversation.c.created, conversation.c.id)
OWNERS: Final = select(entry.c.conversation, func.max(entry.c.n)).group_by(entry.c.conversation)
ENTRIES: Final = (
    select(*entry.c[1:])
    .where(entry.c.conversation == _of, entry.c.n >= _start, entry.c.n < _stop)
    .order_by(entry.c.n)
    .limit(bindparam("page"))
)
COMMITS: Final = select(*commit_log.c[1:]).where(commit_log.c.conversation == _of).order_by(commit_log.c.n)
COMMIT_HEAD: Final = select(commit_log.c.id).where(commit_log.c.conversation == _of, commit_log.c.n == bindparam("at_n"))
USAGES: Final = (
    select(*usage.c[1:]).where(usage.c.conversation == _of, usage.c.n >= _start, usage.c.n < _stop).order_by(usage.c.n)
)
_newest = (
    select(conversation.c.id)
    .where(conversation.c.tenant == _of)
    .order_by(conversation.c.created.desc(), conversation.c.id.desc())
    .limit(bindparam("newest"))
    .subquery()
)
CALL_COUNTS: Final = (
    select(func.count())
    .select_from(usage.join(_newest, usage.c.conversation == _newest.c.id))
    .group_by(usage.c.conversation)
    .order_by(func.count())
)
ASIDES: Final = select(*aside.c[2:]).where(aside.c.conversation == _of).order_by(aside.c.id)
HOLDS: Final = select(*hold.c[1:]).where(hold.c.conversation == _of).order_by(hold.c.kind, hold.c.object)
LINKS_AT_ONCE: Final = 64
LINKS: Final = select(client_link).where(client_link.c.id.in_([bindparam(f"id_{n}", type_=Text()) for n in range(LINKS_AT_ONCE)]))

ADD_CONVERSATION: Final = insert(conversation).inline()
ADD_ENTRY: Final = insert(entry).inline()
ADD_COMMIT: Final = insert(commit_log).inline()
ADD_USAGE: Final = insert(usage).inline()
ADD_ASIDE: Final = insert(aside).values({column: bindparam(column.name) for column in aside.c[1:]}).inline()  # numbers itself
ADD_HOLD: Final = insert(hold).inline()
ADD_LINK: Final = insert(client_link).inline()

# The compare-and-swaps: they change one row, or none when another writer was first.
ADVANCE: Final = (
    update(conversation)
    .where(
        conversation.c.id == _of, conversation.c.length == bindparam("old_length"), conversation.c.head == bindparam("old_head")
    )
    .values(length=bindparam("new_length"), head=bindparam("new_head"))
)
ADVANCE_COMMITS: Final = (
    update(conversation)
    .where(conversation.c.id == _of, conversation.c.commits == bindparam("old_commits"))
    .values(commits=bindparam("new_commits"))
)
HOLD_TO: Final = (
    update(conversation)
    .where(conversation.c.id == _of)
    .values({column: bindparam(f"new_{column}") for column in ("dialect", "model", "budget", "terms")})
)
ENTITLE: Final = (
    update(conversation)
    .where(conversation.c.id == _of, conversation.c.title == bindparam("old_title"))
    .values(title=bindparam("new_title"))
)

DROP_USAGE: Final = delete(usage).where(usage.c.conversation == _of, usage.c.n == bindparam("at_n"))
DROP_LINK: Final = delete(client_link).where(client_link.c.id == bindparam("of_id", type_=Text()))
DROP_HOLD: Final = delete(hold).where(
    hold.c.conversation == _of,
    hold.c.kind == bindparam("of_kind"),
    hold.c.object == bindparam("of_object"),
)

PARENTS: Final = select(conversation.c.id, func.coalesce(conversation.c.parent, ""))
# All that a conversation has, its cover sheet last.
FORGET: Final = (
    *(delete(table).where(table.c.conversation == _of) for table in (client_link, hold, aside, usage, commit_log, entry)),
    delete(conversation).where(conversation.c.id == _of),
)
