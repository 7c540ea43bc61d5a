-- What runs of benchmarks came to, by benchmark and condition, from events `bench_run`. Figures by run have their spread over the runs: `sd` is the
-- sample's, null of fewer than two. What counts tasks is a share `{hits, of}`. What was not reported is not counted as nothing: of a run whose sessions
-- were not measured, all that is summed over sessions is null.
create macro total(list, name) as list_sum(list_transform(list, lambda each: each[name]));
create macro total_of(list, part, name) as list_sum(list_transform(list, lambda each: each[part][name]));
create macro found(list, part, name) as case when len(list) > 0 then flatten(list_transform(list, lambda each: each[part][name])) end;
create macro by_run(value) as case when count(value) > 0 then {
    'n': count(value), 'mean': sum(value) / count(value), 'sd': stddev_samp(value), 'low': min(value), 'high': max(value)
} end;
create macro share(hits, of_) as {'hits': coalesce(sum(hits), 0), 'of': coalesce(sum(of_), 0)};
create macro prompt(usage) as usage['uncached'] + usage['cache_write'] + usage['cache_read'];

create table each_run as
    select *, list_sum(list_transform(tasks, lambda t: prompt(t.usage))) as prompts, prompts + total_of(tasks, 'usage', 'output') as processed,
        nullif(len(list_filter(tasks, lambda t: t.solved is not null)), 0) as judged, len(list_filter(tasks, lambda t: t.solved)) as solved,
        -- The replies for annotation alone, and what stands in every request for it. The delimiters' own tokens, carried by later requests, are not in it.
        list_sum(list_transform(sessions, lambda s: s.overhead.replies_tokens + s.overhead.standing_tokens * (s.replies - s.overhead.replies))) as overhead,
        total_of(sessions, 'overhead', 'delimiters') as delimiters, total_of(sessions, 'typing', 'expl') + total_of(sessions, 'typing', 'act') as declared,
        total_of(sessions, 'explored', 'looks') as looks, found(sessions, 'explored', 'again') as again, found(sessions, 'typing', 'mistyped') as mistyped
    from bench_runs;
create view report as
    select benchmark, condition, coalesce(list_sort(list_distinct(list(model) filter (model <> ''))), []) as models,
        coalesce(list_sort(list_distinct(list(ceiling) filter (ceiling > 0))), []) as ceilings, count(*) as runs, sum(len(tasks)) as tasks,
        share(solved, judged) as solved, by_run(each_run.solved / judged) as solved_share,
        list_aggregate(flatten(list(list_transform(each_run.tasks, lambda t: t.reason))), 'histogram') as ended, by_run(total(each_run.tasks, 'calls')) as calls,
        by_run(processed) as processed, sum(total_of(each_run.tasks, 'usage', 'cache_read')) / nullif(sum(prompts), 0) as cached_share,
        by_run(total(each_run.tasks, 'usd')) as usd, sum(total(each_run.tasks, 'unpriced')) as unpriced, by_run(total(each_run.tasks, 'seconds')) as seconds,
        by_run(total(each_run.tasks, 'commits')) as commits, by_run(total(each_run.tasks, 'summaries')) as summaries,
        {
            'delimiters': by_run(delimiters), 'refused': share(total_of(sessions, 'overhead', 'refused'), delimiters),
            'overhead_tokens': by_run(total_of(sessions, 'overhead', 'tokens')), 'overhead_calls': by_run(total_of(sessions, 'overhead', 'replies')),
            'overhead_processed': by_run(overhead), 'overhead_share': sum(overhead) / nullif(sum(each_run.processed) filter (overhead is not null), 0),
            'overhead_usd': by_run(total_of(sessions, 'overhead', 'replies_usd')), 'declared': by_run(declared), 'mistyped': share(len(mistyped), declared),
            'expl_that_wrote': coalesce(sum(len(list_filter(mistyped, lambda m: m.type = 'expl'))), 0),
            'act_that_changed_nothing': coalesce(sum(len(list_filter(mistyped, lambda m: m.type = 'act'))), 0),
            'left_open': coalesce(sum(total_of(sessions, 'typing', 'open')), 0),
            'missing': share(len(found(sessions, 'dependencies', 'missing')), total_of(sessions, 'dependencies', 'used')), 'explored': by_run(looks),
            'again': share(len(again), looks), 'again_tokens': by_run(case when again is not null then coalesce(total(again, 'tokens'), 0) end),
            'again_across': coalesce(sum(len(list_filter(again, lambda a: a.across))), 0), 'again_gone': coalesce(sum(len(list_filter(again, lambda a: a.gone))), 0),
            'recalls': by_run(total(sessions, 'recalls'))
        } as marks
    from each_run group by benchmark, condition order by min(n);
