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

-- A row for each policy: mean share of the view that left, verdicts of no impact, cases without one, categories of the worst losses; `detector`: no impact
-- by the mechanical detector, of the same cases, as far as the question shows.
create view policies as
  with kinds as (
    select policy, map_from_entries(list({k: category, v: count} order by count desc, place)) as categories
    from (select facts.policy as policy, verdict.culprit.category as category, count(*) as count, min(n) as place
          from judged_plans where verdict.culprit is not null group by all)
    group by all),
  counts as (
    select facts.policy as policy, count(*) as cases, sum(facts.pruned order by n) / count(*) as pruned,
      count(*) filter (verdict.valid) as valid, count(verdict) as judged, count(*) filter (verdict.uncertain) as uncertain,
      count(*) filter (spared(failure)) as not_asked, count(*) filter (verdict is not null and not missed) as detector,
      min(n) as place
    from judged_plans group by all)
  select policy, cases, pruned, {hits: valid, of: judged} as no_impact, uncertain, cases - judged - not_asked as failed, not_asked,
    coalesce(categories, map {}) as categories, {hits: detector, of: judged} as detector, place
  from counts left join kinds using (policy);
-- Judge against detector: plans with an impact by both, by one of them, by neither. `kappa` is Cohen's, agreement beyond what the two shares alone would
-- bring; null where chance leaves no room for any.
create view agreement as
  with counts as (select count(*) filter (not verdict.valid and missed) as both, count(*) filter (not verdict.valid and not missed) as judge_only,
    count(*) filter (verdict.valid and missed) as detector_only, count(*) filter (verdict.valid and not missed) as neither
  from judged_plans),
  shares as (select *, "both" + judge_only + detector_only + neither as cases, ("both" + judge_only) / cases as judge, ("both" + detector_only) / cases as detector,
    judge * detector + (1 - judge) * (1 - detector) as chance from counts)
  select "both", judge_only, detector_only, neither, case when cases > 0 and chance <> 1 then (("both" + neither) / cases - chance) / (1 - chance) end as kappa
  from shares;
-- The judge on cases whose right answer is known: of `needed` those judged to have an impact, of `unused` those judged to have one, and `needed` that the
-- question has no room to show.
create view sensitivity as
  select {hits: count(*) filter (control = 'needed' and missed and not valid), of: count(*) filter (control = 'needed' and missed)} as caught,
    {hits: count(*) filter (control = 'unused' and not valid), of: count(*) filter (control = 'unused')} as alarmed,
    count(*) filter (control = 'needed' and not missed) as set_aside
  from (select facts.control as control, verdict.valid as valid, len(lost) > 0 as missed from judged where verdict is not null);
-- Of pairs put to the A/B judge, those in which it prefers the one that is right, and those in which it prefers the wrong one.
create view controls as
  select {hits: count(*) filter (chosen = 'first'), of: count(*)} as preferred, count(*) filter (chosen = 'second') as reversed
  from pairs where plan.control <> '';
-- Whether the A/B judge favours a place: the same letter was better in both orders, a tie in one order and none in the other, and of replies that prefer
-- anything those that prefer A.
create view bias as
  select count(*) as pairs, count(*) filter (one <> other and 'tie' not in (one, other)) as flipped,
    count(*) filter (one <> other and 'tie' in (one, other)) as unsteady,
    (select {hits: count(*) filter (verdict = 'A_better'), of: count(*) filter (verdict <> 'tie')}
     from (select forth.verdict as verdict from compared union all select back.verdict from compared)) as first
  from pairs;
-- Cases on which judge and detector differ, for somebody to look at: who alone says there was an impact, what is missing, and the step that uses it with
-- its line in its file; 0 where that is not known.
create view disagreements as
  select n, facts, if(not verdict.valid, 'judge', 'detector') as by, verdict.summary as summary,
    case when verdict.valid then need.text else coalesce(nullif(verdict.culprit.missing, ''), dependency.what, '') end as what,
    case when verdict.valid then coalesce(need.objects[1], 'entry:' || need.held[1][1]) else verdict.culprit.target_id end as object,
    case when verdict.valid then need.category else verdict.culprit.category end as category,
    case when verdict.valid then 'call ' || need.call else coalesce(dependency.used_by, '') end as used_by,
    case when verdict.valid then need.line else 0 end as line
  from (select *, lost[1] as need, list_filter(verdict.dependencies, lambda each: each.stands = 'lost')[1] as dependency from judged_plans)
  where verdict is not null and verdict.valid = missed;
create view totals as
  select (select count(*) from judged where repaired) as repaired, coalesce(sum(hidden), 0)::bigint as hidden from judged_plans;
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
  select a as first, b as second, count(*) as cuts,
    count(*) filter (one and not other) as only_first, count(*) filter (other and not one) as only_second,
    count(*) filter (chosen = 'first') as preferred, count(*) filter (chosen = 'tie') as ties,
    count(*) filter (chosen = 'second') as rejected, count(*) filter (chosen = 'none') as not_compared,
    [{hits: coalesce(sum(case chosen when 'first' then 1.0 when 'second' then 0.0 when 'tie' then 0.5 else one::int end), 0)::double, of: count(*)},
     {hits: coalesce(sum(case chosen when 'first' then 0.0 when 'second' then 1.0 when 'tie' then 0.5 else other::int end), 0)::double, of: count(*)}]
      as calibrated
  from cuts;
create macro sums(part) as table
  select coalesce(sum(x.questions), 0)::bigint as questions, coalesce(sum(x.usd order by n), 0.0)::double as usd,
    coalesce(sum(x.unreported), 0)::bigint as unreported, coalesce(sum(x.unpriced), 0)::bigint as unpriced,
    {uncached: coalesce(sum(x.usage.uncached), 0)::bigint, cache_write: coalesce(sum(x.usage.cache_write), 0)::bigint,
     cache_read: coalesce(sum(x.usage.cache_read), 0)::bigint, output: coalesce(sum(x.usage.output), 0)::bigint} as usage
  from (select n, case part when 'spent' then spent else earlier end as x from outcomes);
