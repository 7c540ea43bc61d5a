-- What the sections of the evidence ask: policies over many sessions, added up. Tables beside the events: origins, rules, members, labels, claims.

create macro whose(policy) as coalesce((select o.whose from origins o where o.name = split_part(policy, ' ', 1)), 'bound');
create macro cited(policy) as coalesce((select o.source from origins o where o.name = split_part(policy, ' ', 1)), 'knows the future');
create macro place(policy) as coalesce((select o.place from origins o where o.name = split_part(policy, ' ', 1)), 0);  -- bounds, ours, peers
create macro budget_text(tokens) as case when tokens is null then 'uncapped' when tokens >= 1000 then printf('%gk', tokens / 1000.0) else tokens::varchar end;

create macro called(policy, variant, ceiling) as case when variant <> '' then policy || ' at ' || budget_text(ceiling) || ', ' || variant else policy end;

-- Bills and measures: of one, and added up in the order of their events.
create macro total_usd(b) as (b)['uncached']['usd'] + (b)['cache_write']['usd'] + (b)['cache_read']['usd'] + (b)['output']['usd'] + (b)['recall']['usd'] + (b)['helpers_usd'];
create macro missed(m) as (m)['misses']['routed'] + (m)['misses']['lost'];
create macro per_hundred(needs, m) as coalesce(100 * (needs) / nullif((m)['calls'], 0), 0.0);
create macro overruns(m) as (m)['unmet'] * 4 >= (m)['calls'] and (m)['calls'] > 0;
create macro part(m, name) as {'tokens': sum((m)['bill'][name]['tokens'])::bigint, 'usd': sum((m)['bill'][name]['usd'])};
create macro misses(x) as {'visible': sum((x)['visible'])::bigint, 'routed': sum((x)['routed'])::bigint, 'lost': sum((x)['lost'])::bigint, 'calls': sum((x)['calls'])::bigint};
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

-- Cuts: each policy at each target, over all sessions and by group.
create macro outcome() as table
    select g, c.policy, c.target, min(c.n) as first, count(*) as cuts, avg(pruned) as pruned, count(*) filter (pruned < 0.9 * target) as short,
        sum(visible + routed + lost)::bigint as needs, sum(routed)::bigint as routed, sum(lost)::bigint as lost,
        count(*) filter (routed + lost = 0) as untouched
    from (select '' as g, * from cuts union all select groups.name, cuts.* from cuts join groups using (source)) c
    where c.matched = '' group by g, c.policy, c.target;
create table cut_outcomes as
    select *, (routed + lost) / cuts as missed, untouched / cuts as no_impact, whose(policy) as whose, place(policy) as place,
        short * 4 >= cuts and whose(policy) <> 'bound' as less
    from outcome();
create table duels as
    with theirs as (
        select * from cuts where matched = '' qualify row_number() over (partition by source, cut, policy, pruned order by n desc) = 1
    )
    select o.policy, o.matched as other, min(o.n) as first, count(*) as cuts, avg(t.pruned) as pruned, avg(o.pruned) as own_pruned,
        sum(o.routed + o.lost)::bigint as own_missed, sum(t.routed + t.lost)::bigint as other_missed,
        count(*) filter (o.routed + o.lost = 0) as own_untouched, count(*) filter (t.routed + t.lost = 0) as other_untouched,
        count(*) filter (o.routed + o.lost < t.routed + t.lost) as better, count(*) filter (o.routed + o.lost > t.routed + t.lost) as worse
    from cuts o join theirs t on t.source = o.source and t.cut = o.cut and t.policy = o.matched and t.pruned = o.target
    where o.matched <> '' group by all;

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
