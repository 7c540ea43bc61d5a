-- The sums over outcomes of `tenure judge`: views over its events `judged` and `compared`.
create view judged_plans as select *, len(lost) > 0 as missed from judged where facts.control = '';
create view outcomes as
  select n, failure, spent, earlier from judged union all select n, failure, spent, earlier from compared;
create macro spared(failure) as failure is not null and starts_with(failure.why, getvariable('not_asked'));
create macro better(verdict, a, b) as case verdict when 'A_better' then a when 'B_better' then b else 'tie' end;

-- A pair of plans asked in both orders, in the pair's own order: what holds in one order only is a tie.
create view pairs as
  select *, case when one = other then one else 'tie' end as chosen
  from (select n, "first" as plan, better(forth.verdict, 'first', 'second') as one, better(back.verdict, 'second', 'first') as other
        from compared where forth is not null and back is not null);

create view rows_ as
  select facts.policy as policy, count(*)::int as cases, list(facts.pruned order by n) as pruned,
    count(*) filter (verdict.valid) as valid, count(verdict) as judged, count(*) filter (verdict.uncertain) as uncertain,
    count(*) filter (spared(failure)) as not_asked, count(*) filter (verdict is not null and not missed) as detector,
    min(n) as place
  from judged_plans group by all order by place;
create view categories as
  select facts.policy as policy, verdict.culprit.category as category, count(*) as count
  from judged_plans where verdict.culprit is not null group by all order by count desc, min(n);
create view agreement as
  select count(*) filter (not verdict.valid and missed) as both, count(*) filter (not verdict.valid and not missed) as judge_only,
    count(*) filter (verdict.valid and missed) as detector_only, count(*) filter (verdict.valid and not missed) as neither
  from judged_plans;
create view sensitivity as
  select count(*) filter (control = 'needed' and missed and not valid) as caught, count(*) filter (control = 'needed' and missed) as shown,
    count(*) filter (control = 'unused' and not valid) as alarmed, count(*) filter (control = 'unused') as unused,
    count(*) filter (control = 'needed' and not missed) as set_aside
  from (select facts.control as control, verdict.valid as valid, len(lost) > 0 as missed from judged where verdict is not null);
create view controls as
  select count(*) as pairs, count(*) filter (chosen = 'first') as preferred, count(*) filter (chosen = 'second') as reversed
  from pairs where plan.control <> '';
create view bias as
  select count(*) as pairs, count(*) filter (one <> other and 'tie' not in (one, other)) as flipped,
    count(*) filter (one <> other and 'tie' in (one, other)) as unsteady
  from pairs;
create view letters as
  select count(*) filter (verdict = 'A_better') as a, count(*) filter (verdict = 'B_better') as b
  from (select forth.verdict as verdict from compared union all select back.verdict from compared);
create view failures as
  select failure.kind || ': ' || failure.why as why, count(*) as count
  from outcomes where failure is not null and not spared(failure) group by all order by count desc, min(n);

-- Two policies on the cuts at which both have a verdict. Where they differ, the A/B judge decides; a tie counts half for each.
create macro against(a, b) as table
  with verdicts as (
    select facts.source as source, facts.cut as cut, facts.policy as policy, arg_max(verdict.valid, n) as valid
    from judged_plans where verdict is not null group by all),
  preferred as (
    select plan.source as source, plan.cut as cut, arg_max(chosen, n) as chosen from pairs where plan.control = '' group by all),
  cuts as (
    select one.valid as one, other.valid as other, case when one.valid <> other.valid then coalesce(chosen, 'none') end as chosen
    from verdicts one join verdicts other using (source, cut) left join preferred using (source, cut)
    where one.policy = a and other.policy = b)
  select count(*) as cuts, count(*) filter (one and not other) as only_first, count(*) filter (other and not one) as only_second,
    count(*) filter (chosen = 'first') as preferred, count(*) filter (chosen = 'tie') as ties,
    count(*) filter (chosen = 'second') as rejected, count(*) filter (chosen = 'none') as not_compared,
    coalesce(sum(case chosen when 'first' then 1.0 when 'second' then 0.0 when 'tie' then 0.5 else one::int end), 0)::double as first_hits,
    coalesce(sum(case chosen when 'first' then 0.0 when 'second' then 1.0 when 'tie' then 0.5 else other::int end), 0)::double as second_hits
  from cuts;
create macro sums(part) as table
  select coalesce(sum(x.questions), 0)::bigint as questions, coalesce(sum(x.usd order by n), 0.0)::double as usd,
    coalesce(sum(x.unreported), 0)::bigint as unreported, coalesce(sum(x.unpriced), 0)::bigint as unpriced,
    {uncached: coalesce(sum(x.usage.uncached), 0)::bigint, cache_write: coalesce(sum(x.usage.cache_write), 0)::bigint,
     cache_read: coalesce(sum(x.usage.cache_read), 0)::bigint, output: coalesce(sum(x.usage.output), 0)::bigint} as usage
  from (select n, case part when 'spent' then spent else earlier end as x from outcomes);
