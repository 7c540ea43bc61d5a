-- Which published claims hold on the swept sessions, for every policy under each protocol that a claim can be tested under. "The
-- paper" is the CWL paper, "the post" its authors' announcement. A verdict is of the sessions and prices at hand: they ran GPT-5.4 live, we replay
-- recordings, so what a model would have done otherwise under a tighter budget is not in the bill (the misses say how often it would).

create table published as select * from (values
    (1, '20-70 % cheaper than uncapped', 'at a ceiling of 80k a session costs 20 to 70 % less than one that may fill the model''s window', 'CWL paper, sections 5 and 6.3', true),
    (2, '20-70 % cheaper than no limit at all', 'the same against a session that no window ends', 'CWL paper, sections 5 and 6.3', true),
    (3, '3 times cheaper at 50k', 'around 50k a session costs up to 3 times less than at 120k and above', 'CWL paper, section 6.4', true),
    (4, 'a jump above 120k', 'above 120k the cost increases sharply', 'CWL paper, section 6.4', true),
    (5, '23 % cheaper than compaction', 'over dependent tasks eviction at 80k costs 23 % less than the harness''s own compaction', 'CWL paper, section 6.5', false),
    (6, 'as cheap as isolated sessions', 'one session of all tasks at 80k costs about what the tasks cost alone', 'CWL paper, section 6.3; the post, Capping active token count', false)
) claims(number, claim, says, origin, of_isolated);

create macro figure(name, value, unit) as {'name': name, 'value': (value)::double, 'unit': unit};
create macro k(ceiling) as case when ceiling is null then 'no limit' else (ceiling // 1000)::varchar || 'k' end;
create macro ratio(one, other) as case when (other) <> 0 then (one) / (other) else 1.0 end;  -- to nothing, 1
-- Growth of the cost over growth of the ceiling, both as logarithms: 1 where they grow alike, 0 where the cost stays.
create macro growth(less, more) as ln(ratio((more)['usd'], (less)['usd'])) / ln((more)['ceiling'] / (less)['ceiling']);
-- The parts in which the lower of two ceilings changed anything.
create macro touched(low, high) as list_filter(
    list_transform((low)['parts'], lambda p: {'now': p, 'before': list_filter((high)['parts'], lambda q: q['name'] = p['name'])[1]}),
    lambda t: t['before'] is not null and t['now'] <> t['before']
);

-- What a claim is tested on: one policy's rows by ceiling; `free` is the row without one.
create table tested as
    with r as (select protocol, policy, first, {'ceiling': ceiling, 'usd': usd, 'usd_again': usd_again, 'calls_missing': calls_missing, 'parts': parts} as budget from sweep)
    select named.protocol, named.policy, named.first,
        arg_max(budget, r.first) filter (budget.ceiling = 50000) as low, arg_max(budget, r.first) filter (budget.ceiling = 80000) as tau,
        arg_max(budget, r.first) filter (budget.ceiling = 120000) as high, arg_max(budget, r.first) filter (budget.ceiling = 160000) as above,
        arg_max(budget, r.first) filter (budget.ceiling = 267000) as wide, arg_max(budget, r.first) filter (budget.ceiling is null) as free
    from (select protocol, policy, min(first) as first from sweep where policy not in ('none', 'compaction') group by protocol, policy) named
    join r on r.protocol = named.protocol and r.policy in (named.policy, 'none')
    group by named.protocol, named.policy, named.first;

create view findings as
    with saving as (
        select *, 1 - ratio(tau.usd, other.usd) as saved, list_sort(list_transform(touched(tau, other), lambda t: 1 - t['now']['usd'] / t['before']['usd'])) as each
        from (select 1 as number, 267000 as against, wide as other, * from tested union all select 2, null, free, * from tested)
    ),
    times as (
        select *, list_transform(higher, lambda r: {'cap': k(r['ceiling']), 'times': ratio(r['usd'], low.usd)}) as ratios
        from (select *, list_filter([high, above, wide], lambda r: r is not null) as higher from tested where low is not null and high is not null)
    ),
    jumps as (select *, growth(tau, high) as before, growth(high, above) as after from tested where tau is not null and high is not null and above is not null),
    late as (select ceiling, usd from sweep where policy = 'compaction' and ceiling is not null order by ceiling desc, first limit 1),
    compared as (
        select *, 1 - ratio(tau.usd, (select usd from late)) as saved, k((select ceiling from late)) as where_to
        from tested where tau is not null and exists (from late)
    ),
    alone as (select usd from sweep where protocol = 'isolated' and policy = 'none' order by first limit 1),
    together as (select *, ratio(tau.usd, (select usd from alone)) - 1 as more from tested where tau is not null and exists (from alone))
    -- 0.2 to 0.7: CWL paper, sections 5 and 6.3
    select number, protocol, policy, first,
        case when tau is null or other is null then 'cannot be tested' when saved <= 0 then 'does not hold' when saved >= 0.2 then 'holds' else 'partly' end as verdict,
        case when tau is null or other is null then 'needs rows at 80k, ' || k(against) when saved <= 0 then 'the capped sessions cost more'
            when saved < 0.2 then 'something is saved, less than the claim says' when saved <= 0.7 then 'the saving in all lies in the range'
            else 'more is saved than the claim says' end as because,
        case when tau is null or other is null then [] else [
            figure('saved in all', saved, 'share'), figure('saved, had what was lost been fetched again', 1 - ratio(tau.usd_again, other.usd_again), 'share'),
            figure('saved, least of a part', coalesce(each[1], 0), 'share'), figure('saved, most of a part', coalesce(each[-1], 0), 'share'),
            figure('parts that the ceiling touched', len(each), 'count'),
            figure('of these saved 20 to 70 %', len(list_filter(each, lambda s: s between 0.2 and 0.7)), 'count')
        ] end as figures
    from saving
    -- "up to 3 times" holds from 2.5 on
    union all select 3, protocol, policy, first, case when list_max(list_transform(ratios, lambda r: r['times'])) >= 2.5 then 'holds'
            when list_max(list_transform(ratios, lambda r: r['times'])) >= 1.1 then 'partly' else 'does not hold' end,
        array_to_string(list_transform(ratios, lambda r: printf('%.1f times less than at %s', r['times'], r['cap'])), ', '),
        list_concat(list_transform(ratios, lambda r: figure('cost at ' || r['cap'] || ' over cost at 50k', r['times'], 'times')), [
            figure('the last, had what was lost been fetched again', ratio(higher[-1].usd_again, low.usd_again), 'times'),
            figure('the most of a part', coalesce(list_max(list_transform(touched(low, higher[-1]), lambda t: t['before']['usd'] / t['now']['usd'])), 1.0), 'times'),
            figure('calls that miss something, at 50k over 120k', low.calls_missing / greatest(1, high.calls_missing), 'times')
        ])
    from times
    union all select 3, protocol, policy, first, 'cannot be tested', 'needs rows at 50k, 120k', [] from tested where low is null or high is null
    -- a sharp increase: it grows twice as fast above as below; up to a tenth more is alike
    union all select 4, protocol, policy, first,
        case when after <= 0 then 'does not hold' when before <= 0 or after >= 2 * before then 'holds' when after > 1.1 * before then 'partly' else 'does not hold' end,
        case when after <= 0 then 'above 120k the cost does not grow' when before <= 0 or after >= 2 * before then 'the cost grows much faster above 120k than below'
            when after > 1.1 * before then 'the cost grows somewhat faster above 120k than below, no jump' else 'the cost grows above 120k as it does below' end,
        list_concat(
            [figure('cost growth per growth of the ceiling, 80k to 120k', before, 'times'), figure('cost growth per growth of the ceiling, 120k to 160k', after, 'times')],
            case when wide is null then [] else [figure('cost growth per growth of the ceiling, 160k to 267k', growth(above, wide), 'times')] end
        )
    from jumps
    union all select 4, protocol, policy, first, 'cannot be tested', 'needs rows at 80k, 120k, 160k', [] from tested where tau is null or high is null or above is null
    -- 23 % (section 6.5), less what is little to no difference
    union all select 5, protocol, policy, first, case when saved >= 0.18 then 'holds' when saved > 0 then 'partly' else 'does not hold' end,
        printf('%.0f%% ', 100 * abs(saved)) || if(saved > 0, 'below', 'above') || ' compaction at ' || where_to,
        (select list(figure('cheaper than compaction at ' || k(c.ceiling) || ' (' || c.variant || ')', 1 - ratio(tau.usd, c.usd), 'share') order by c.first)
         from sweep c where c.policy = 'compaction' and c.ceiling is not null)
    from compared
    union all select 5, protocol, policy, first, 'cannot be tested', 'there is no row of a compaction', [] from tested where tau is null or not exists (from late)
    -- up to a tenth is alike
    union all select 6, protocol, policy, first, case when more <= 0.1 then 'holds' when more <= 0.2 then 'partly' else 'does not hold' end,
        printf('%+.0f%%', 100 * more) || if(more < -0.1, ': cheaper than said', ''),
        [figure('one session at 80k over isolated sessions', 1 + more, 'times'), figure('isolated sessions', (select usd from alone), 'usd')]
    from together
    union all select 6, protocol, policy, first, 'cannot be tested', 'there is no row of isolated sessions', [] from tested where tau is null or not exists (from alone);

create table claims as
    select row_number() over (order by protocol, first, number) - 1 as n, claim, says, origin, protocol, policy, verdict, because, to_json(figures)::varchar as figures,
        to_json({'type': 'claim', 'claim': claim, 'says': says, 'origin': origin, 'protocol': protocol, 'policy': policy, 'verdict': verdict, 'because': because, 'figures': figures})::varchar as line
    from findings join published using (number) where protocol = 'accumulating' or of_isolated order by n;
