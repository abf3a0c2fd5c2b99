"""The documented read-only views for SQL (`debug_query` with `sql`, `strobe-ctl sql`): what a person would call the columns.

calls      one row a call: id, hook, function, file, line, thread_id, thread_name, pid, start_ns, end_ns (NULL: not left yet),
           duration_ns, unwound, parent_id, caller, result_type, result, a0 … (bits: integers as they are), exit_id
events_v   every event in one shape: n, ts, event_type, function, file, line, thread_id, pid, parent_n, duration_ns, text
output_v   stdout and stderr: n, ts, stream, start, text, approximate, parent_n, thread_id, pid (of who wrote, where that is known)
crashes_v  crashes: n, ts, pid, tid, text, data (JSON)
samples_v  variable_snapshot events: n, ts, pid, tid, text, data (JSON)
strings, hooks, threads, losses are tables and may be read as they are.
"""

from __future__ import annotations

from actors.store.schema import UNWOUND


def views(value_columns: int) -> list[str]:
    arguments, columns, opened = ("".join(f", {owner}a{k}" for k in range(value_columns)) for owner in ("c.", "", "o."))
    return [
        # Calls whose exit came in a later commit are few: only they are joined to it.
        f"""CREATE OR REPLACE VIEW calls AS
            SELECT c.n, c.exit_n, h.function, h.file, h.line, t.tid AS thread_id, t.name AS thread_name, t.pid,
                   c.ts, c.exit_ts, c.exit_ts - c.ts AS duration_ns, (c.flags & {UNWOUND}) != 0 AS unwound,
                   nullif(c.parent, 0) AS parent_n, k.function AS caller, h.result_type, c.ret AS result{arguments}, c.hook
            FROM (SELECT n, exit_n, ts, exit_ts, flags, parent, ret, hook, caller, thread{columns} FROM raw_calls WHERE exit_n IS NOT NULL
                  UNION ALL
                  SELECT o.n, x.n, o.ts, x.ts, coalesce(x.flags, o.flags), o.parent, x.ret, o.hook, o.caller, o.thread{opened}
                  FROM raw_calls o LEFT JOIN raw_exits x ON x.call = o.n WHERE o.exit_n IS NULL) c
            LEFT JOIN hooks h ON h.id = c.hook LEFT JOIN hooks k ON k.id = c.caller LEFT JOIN threads t ON t.id = c.thread""",
        """CREATE OR REPLACE VIEW output_v AS
            SELECT o.n, o.ts, CASE o.stream WHEN 1 THEN 'stdout' ELSE 'stderr' END AS stream, o.start, o.text, o.approximate,
                   nullif(o.parent, 0) AS parent_n, t.tid AS thread_id, t.pid FROM output o LEFT JOIN threads t ON t.id = o.thread""",
        "CREATE OR REPLACE VIEW crashes_v AS SELECT n, ts, pid, tid, text, data FROM points WHERE type = 'crash'",
        "CREATE OR REPLACE VIEW samples_v AS SELECT n, ts, pid, tid, text, data FROM points WHERE type = 'variable_snapshot'",
        """CREATE OR REPLACE VIEW events_v AS
            SELECT e.n, e.ts, e.event_type, h.function, h.file, h.line, t.tid AS thread_id, t.pid, nullif(e.parent, 0) AS parent_n,
                   e.duration_ns, NULL::VARCHAR AS text
            FROM (SELECT n, ts, 'function_enter' AS event_type, hook, thread, parent, NULL::BIGINT AS duration_ns FROM raw_calls
                  UNION ALL SELECT exit_n, exit_ts, 'function_exit', hook, thread, n, exit_ts - ts FROM raw_calls WHERE exit_n IS NOT NULL
                  UNION ALL SELECT n, ts, 'function_exit', hook, thread, call, ts - enter_ts FROM raw_exits) e
            LEFT JOIN hooks h ON h.id = e.hook LEFT JOIN threads t ON t.id = e.thread
            UNION ALL SELECT n, ts, stream, NULL, NULL, NULL, thread_id, pid, parent_n, NULL, text FROM output_v
            UNION ALL SELECT n, ts, type, function, file, line, tid, pid, parent, NULL, text FROM points""",
    ]
