-- The function graphile_worker.add_jobs drops a job without an error if a worker locks the job with the same key during
-- the call. Therefore this function calls it again. The second call sees the lock, and adds a new job.
create function queue_jobs(specs graphile_worker.job_spec[], keeps_time boolean default false) returns int
language plpgsql as $$
declare
  missing graphile_worker.job_spec[] := specs;
begin
  for attempt in 1..10 loop
    if cardinality(missing) = 0 then
      return cardinality(specs);
    end if;
    with added as materialized (
      select key from graphile_worker.add_jobs(missing, keeps_time)
    )
    select coalesce(array_agg(spec), '{}') into missing from unnest(missing) spec
    where spec.job_key not in (select key from added);
  end loop;
  raise exception 'jobs were not queued: %', (select array_agg(distinct identifier) from unnest(missing));
end;
$$;
comment on function queue_jobs is 'Queues jobs with keys, each for certain. Returns their number.';
