-- What the sections of the evidence ask: policies over many sessions, added up. Tables beside the events: rules, members, labels, claims.

-- Whose every policy is, by the first word of a row's name (`compaction at 80k` is compaction's), and the source that it cites. `bound` is what no policy
-- can do, because it knows the future, or does nothing; what is not here is an oracle. Places are those in tables: bounds, ours, peers.
create table origins as select *, case whose when 'bound' then 0 when 'ours' then 1 else 2 end as place from (values
    ('cwl', 'ours', 'CWL paper, sections 4.2 to 4.4, with our settings'),
    ('cwl-inferred', 'ours', 'CWL paper, Algorithm 1, over inferred work'),
    ('tiered', 'ours', 'tiered context text'),
    ('graph', 'ours', 'this project'),
    ('cwl-paper', 'peer', 'CWL paper, Algorithm 1, to the letter'),
    ('pi-cwl', 'peer', 'Kiz8-Team/pi-cwl at cd2ea3f'),
    ('oldest-turn', 'peer', 'Self-GC paper, Baselines'),
    ('tool-prune', 'peer', 'Self-GC paper, Baselines'),
    ('tool-mask-prune', 'peer', 'Self-GC paper, Baselines'),
    ('hybrid', 'peer', 'Self-GC paper, Baselines'),
    ('observation-masking', 'peer', 'The Complexity Trap, arXiv 2508.21433'),
    ('sliding-window', 'peer', 'LangChain trim_messages, Strands'),
    ('opencode-prune', 'peer', 'anomalyco/opencode, session/compaction.ts'),
    ('cline', 'peer', 'cline/cline, ContextManager.ts'),
    ('cline-75-50', 'peer', 'cline/cline, ContextManager.ts'),
    ('clear-tool-uses', 'peer', 'Anthropic, clear_tool_uses_20250919'),
    ('langchain-clearing', 'peer', 'LangChain, ContextEditingMiddleware'),
    ('discard-75', 'peer', 'DeepSeek-V3.2 report, search agent'),
    ('discard-all', 'peer', 'DeepSeek-V3.2 report, search agent'),
    ('compaction', 'peer', 'summary compaction, as agents do it'),
    ('none', 'bound', 'no eviction'),
    ('each', 'bound', 'no eviction, no earlier task')
) known(name, whose, source);

create macro whose(policy) as coalesce((select o.whose from origins o where o.name = split_part(policy, ' ', 1)), 'bound');
create macro cited(policy) as coalesce((select o.source from origins o where o.name = split_part(policy, ' ', 1)), 'knows the future');
create macro place(policy) as coalesce((select o.place from origins o where o.name = split_part(policy, ' ', 1)), 0);
create macro budget_text(tokens) as case when tokens is null then 'uncapped' when tokens >= 1000 then printf('%gk', tokens / 1000.0) else tokens::varchar end;

create macro called(policy, variant, ceiling) as case when variant <> '' then policy || ' at ' || budget_text(ceiling) || ', ' || variant else policy end;

-- Bills and measures: of one, and added up in the order of their events.
create macro total_usd(b) as (b)['uncached']['usd'] + (b)['cache_write']['usd'] + (b)['cache_read']['usd'] + (b)['output']['usd'] + (b)['recall']['usd'] + (b)['helpers_usd'];
create macro all_in(b) as total_usd(b) + (b)['fetched_again']['usd'];  -- with all that was lost fetched again
create macro missed(m) as (m)['misses']['routed'] + (m)['misses']['lost'];
create macro per_hundred(needs, m) as coalesce(100 * (needs) / nullif((m)['calls'], 0), 0.0);
create macro overruns(m) as (m)['unmet'] * 4 >= (m)['calls'] and (m)['calls'] > 0;
create macro part(m, name) as {'tokens': sum((m)['bill'][name]['tokens'])::bigint, 'usd': sum((m)['bill'][name]['usd'])};
create macro misses(x) as {
    'visible': sum((x)['visible'])::bigint, 'routed': sum((x)['routed'])::bigint, 'lost': sum((x)['lost'])::bigint, 'calls': sum((x)['calls'])::bigint,
    'listed': sum((x)['listed'])::bigint, 'objects': sum((x)['objects'])::bigint, 'edits': sum((x)['edits'])::bigint, 'broken_edits': sum((x)['broken_edits'])::bigint
};
create macro kinds(entries) as map_from_entries(list_transform(list_sort(list_transform(
    list_distinct(list_transform(entries, lambda e: e['key'])),
    lambda k: {'less': -list_sum(list_transform(list_filter(entries, lambda e: e['key'] = k), lambda e: e['value']))::bigint, 'kind': k}
)), lambda e: {'key': e['kind'], 'value': -e['less']}));
create macro added(m) as {
    'sessions': sum((m)['sessions'])::bigint, 'entries': sum((m)['entries'])::bigint, 'calls': sum((m)['calls'])::bigint,
    'record_tokens': sum((m)['record_tokens'])::bigint, 'view_tokens': sum((m)['view_tokens'])::bigint, 'peak_view_tokens': max((m)['peak_view_tokens']),
    'commits': sum((m)['commits'])::bigint, 'prefix_breaks': sum((m)['prefix_breaks'])::bigint,
    'bill': {
        'calls': sum((m)['bill']['calls'])::bigint, 'uncached': part(m, 'uncached'), 'cache_write': part(m, 'cache_write'),
        'cache_read': part(m, 'cache_read'), 'output': part(m, 'output'), 'recalls': sum((m)['bill']['recalls'])::bigint,
        'recall': part(m, 'recall'), 'fetched_again': part(m, 'fetched_again'), 'helpers_usd': sum((m)['bill']['helpers_usd'])
    },
    'misses': misses((m)['misses']),
    'evicted_tokens': sum((m)['evicted_tokens'])::bigint, 'evicted_by_kind': kinds(flatten(list(map_entries((m)['evicted_by_kind'])))),
    'unmet': sum((m)['unmet'])::bigint, 'violations': flatten(list((m)['violations']))
};

create table groups as
    select r.name, r.place, p.source from profiles p join rules r on r.name = p.workload
    union all select 'hard', 99, source from profiles where is_hard;

-- Resampled sessions: how often each is drawn in each of 400 draws. Intervals made of them are clustered by session (Poisson bootstrap, no random number).
create macro drawn(u) as case when u < 0.36787944 then 0 when u < 0.73575888 then 1 when u < 0.91969860 then 2 when u < 0.98101184 then 3 when u < 0.99634015 then 4 else 5 end;
create table draws as
    select source, d, drawn((md5_number_lower(source || '#' || d) % 1000003) / 1000003.0) as w
    from (select distinct source from cuts union select distinct source from runs union select distinct source from marked_runs), range(400) t(d);
create macro limits_of(ratios) as {'low': quantile_cont(ratios, 0.025), 'high': quantile_cont(ratios, 0.975)};

-- Cuts: each policy at each target, over all sessions and by group. A cut at which a policy took nothing is idle, and counts for nothing else.
create macro outcome() as table
    select g, c.policy, c.target, min(c.n) as first, count(*) as cuts, count(*) filter (idle) as idle, count(*) filter (not idle) as acted,
        coalesce(avg(pruned) filter (not idle), 0.0) as pruned, count(*) filter (not idle and pruned < 0.9 * target) as short,
        sum(visible + routed + lost)::bigint as needs, sum(listed)::bigint as listed, sum(routed)::bigint as routed, sum(lost)::bigint as lost,
        sum(calls)::bigint as calls, sum(objects)::bigint as objects, sum(edits)::bigint as edits, sum(broken_edits)::bigint as broken_edits,
        count(*) filter (not idle and routed + lost = 0) as untouched
    from (select '' as g, * from cuts union all select groups.name, cuts.* from cuts join groups using (source)) c
    where c.matched = '' group by g, c.policy, c.target;
create table missed_between as
    select policy, target, limits_of(missed) as missed from (
        select policy, target, d, sum(w * (routed + lost)) / nullif(sum(w), 0) as missed from cuts join draws using (source) where matched = '' and not idle group by policy, target, d
    ) group by policy, target;
create table cut_outcomes as
    select o.*, (routed + lost) / nullif(acted, 0) as missed, b.missed as missed_between, untouched / nullif(acted, 0) as no_impact, whose(o.policy) as whose, place(o.policy) as place,
        (short + idle) * 4 >= cuts and whose(o.policy) <> 'bound' as less
    from outcome() o left join missed_between b on b.policy = o.policy and b.target = o.target;
create table pairs as
    with theirs as (
        select * from cuts where matched = '' qualify row_number() over (partition by source, cut, policy, pruned order by n desc) = 1
    )
    select o.n, o.source, o.policy, o.matched as other, t.pruned, o.pruned as own_pruned, o.routed + o.lost as own, t.routed + t.lost as others, o.lost as own_lost, o.routed + o.lost + o.visible as own_needs,
        o.broken_edits as own_broken, t.broken_edits as other_broken, o.calls as own_calls, t.calls as other_calls
    from cuts o join theirs t on t.source = o.source and t.cut = o.cut and t.policy = o.matched and t.pruned = o.target
    where o.matched <> '';
create table duel_between as
    select policy, other, limits_of(times) as times from (
        select policy, other, d, sum(w * own) / nullif(sum(w * others), 0) as times from pairs join draws using (source) group by policy, other, d
    ) group by policy, other;
create table duels as
    select p.policy, p.other, min(n) as first, count(*) as cuts, avg(pruned) as pruned, avg(own_pruned) as own_pruned,
        sum(own)::bigint as own_missed, sum(others)::bigint as other_missed, sum(own) / nullif(sum(others), 0) as times, first(b.times) as times_between,
        sum(own_calls)::bigint as own_calls, sum(other_calls)::bigint as other_calls,
        sum(own_broken)::bigint as own_broken, sum(other_broken)::bigint as other_broken, sum(own_broken) / nullif(sum(other_broken), 0) as broken_times,
        count(*) filter (own = 0) as own_untouched, count(*) filter (others = 0) as other_untouched,
        count(*) filter (own < others) as better, count(*) filter (own > others) as worse
    from pairs p left join duel_between b using (policy, other) group by p.policy, p.other;

-- Replays: sessions alone, and all sessions in conversations.
create table free as select source, measured from runs where policy = 'none';
create table swept as
    select 'isolated' as protocol, policy, '' as variant, budget.ceiling as ceiling, min(n) as first, first(budget order by n) as budget,
        added(measured) as measured, list(struct_pack(name := source, m := measured) order by n) as parts
    from runs where budget.target is null and (policy = 'none' or policy in (select policy from ceilings)) and (budget.ceiling is null or budget.ceiling in (select ceiling from ceilings))
    group by policy, budget.ceiling
    union all
    select 'accumulating', policy, variant, budget.ceiling, 1000000000 + min(n), first(budget order by n), added(measured),
        list(struct_pack(name := 'conversation ' || tasks[1].conversation, m := measured) order by n)
    from conversations group by policy, variant, budget.ceiling;

create table sweep as
    select protocol, policy, variant, ceiling, first, total_usd(measured.bill) as usd, all_in(measured.bill) as usd_again, measured.misses.calls as calls_missing,
        list_transform(parts, lambda p: {
            'name': p.name, 'calls': p.m.calls, 'record_tokens': p.m.record_tokens, 'peak_view_tokens': p.m.peak_view_tokens, 'usd': total_usd(p.m.bill),
            'missed': missed(p.m), 'calls_missing': p.m.misses.calls
        }) as parts
    from swept;

-- Needs whatever leaves: the curves of sessions added up, of all (g = '') and by group.
create view grouped_curves as select '' as g, source, curves as c from curves union all select groups.name, source, curves.curves from curves join groups using (source);
create table reach as
    select g, r.kept, sum(r.missed)::bigint as missed, coalesce(sum(r.missed) / nullif(sum(c.needs), 0), 0.0) as share
    from (select g, c, unnest(c.reach) as r from grouped_curves) group by g, r.kept;
create table needed as select g, count(*) as sessions, sum(c.steps)::bigint as steps, sum(c.tokens)::bigint as tokens, sum(c.needs)::bigint as needs from grouped_curves group by g;
create table needed_kinds as
    select k.kind, sum(k.tokens)::bigint as tokens, sum(k.needs)::bigint as needs, sum(k.sole)::bigint as sole,
        sum(k.tokens) / nullif((select tokens from needed where g = ''), 0) as share_of_tokens, sum(k.needs) / nullif((select needs from needed where g = ''), 0) as share_of_needs,
        coalesce(sum(k.needs) / nullif(sum(k.tokens), 0) * 1000, 0.0) as per_thousand
    from (select unnest(curves.by_kind) as k from curves) group by k.kind;
create table ages as
    select what, b.start, b.stop, sum(b.needs)::bigint as needs, sum(b.token_steps)::bigint as token_steps,
        coalesce(sum(b.needs) / nullif(sum(b.token_steps), 0) * 1000000, 0.0) as per_million
    from (
        select '' as what, unnest(curves.by_steps) as b from curves
        union all select 'tokens', unnest(curves.by_tokens) from curves
        union all select k.kind, unnest(k.bands) from (select unnest(curves.by_kind) as k from curves)
    ) group by what, b.start, b.stop;

-- Bills beside reports, by agent (what = 'agent'), by what is reported of the cache, and all together.
create macro amounts(x) as {'uncached': sum((x)['uncached'])::bigint, 'cache_write': sum((x)['cache_write'])::bigint, 'cache_read': sum((x)['cache_read'])::bigint, 'usd': sum((x)['usd'])};
create macro prompt(x) as (x)['uncached'] + (x)['cache_write'] + (x)['cache_read'];
create macro fresh(x) as (x)['uncached'] + (x)['cache_write'];
create macro off_by(simulated, reported) as coalesce((simulated) / nullif(reported, 0) - 1, 0.0);
create table billed as
    with each as (select b.n, b.compared as c, coalesce(m.tool, 'unknown') as tool from bills b left join members m on m.name = b.compared.name),
    named as (select 'agent' as what, tool as name, * from each union all select 'caching', c.caching, * from each union all select 'all', 'all', * from each)
    select what, name, count(*) as sessions, sum(c.assumed)::bigint as assumed, sum(c.calls)::bigint as calls, amounts(c.reported) as reported, amounts(c.simulated) as simulated,
        sum(c.by_cache.usd) as by_cache, sum(c.plain.usd) as plain, sum(c.off.usd) as off,
        list(off_by(c.simulated.usd, c.reported.usd) order by off_by(c.simulated.usd, c.reported.usd)) as errors
    from named group by what, name;

-- Marked sessions: each policy on the same sessions as they are recorded and with the marks beside them.
create table marked as
    select policy, variant, min(n) as first, count(*) as sessions, added(measured) as m, sum(annotation.calls)::bigint as marks, sum(annotation.refused)::bigint as refused,
        sum(annotation.tokens)::bigint as tokens
    from marked_runs group by policy, variant;
create table marked_between as
    select policy, limits_of(times) as times from (
        select p.policy, d, sum(w * missed(k.measured)) / nullif(sum(w * missed(p.measured)), 0) as times
        from marked_runs p join marked_runs k on k.source = p.source and k.policy = p.policy and k.variant = 'marked' join draws on draws.source = p.source
        where p.variant = 'plain' group by p.policy, d
    ) group by policy;
