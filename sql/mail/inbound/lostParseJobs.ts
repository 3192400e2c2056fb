import type { Pool } from '../../db.ts'
import { addJobsFrom, hasNoJob } from '../../queue/jobs.ts'

/** Sets how long after its arrival a mail without a parse job counts as lost. */
const LOST_AFTER = '10 minutes'
const LOST_BATCH = 1_000

/**
 * Queues accepted mails that have no parse job, or only one that failed for good. A job can be missing after an operator
 * deleted it. A job fails for good if, for example, the object store is unreachable for days. A second job for the same
 * mail would change nothing, because only the first one finds the mail in the state `accepted`.
 * @returns the number of mails that the function queued again.
 */
export async function requeueLostArrivals(pool: Pool): Promise<number> {
  for (let count = 0; ; ) {
    const { rows } = await pool.query<{ found: number }>(REQUEUE)
    const { found } = rows[0]!
    count += found
    if (found < LOST_BATCH) return count
  }
}

/**
 * A mail may also wait in the job of a batch. The list of these mails is read once for all accepted mails, because the
 * batch jobs of a large backlog hold many mails.
 */
const REQUEUE = `
  with batched as materialized (
    select json_array_elements_text(j.payload -> 'inboundIds')::bigint as id
    from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'parse_batch' and (j.attempts < j.max_attempts or j.locked_at is not null)
  ), lost as (
    select i.id::text as payload_id from inbound_mails i join projects p on p.id = i.project_id
    where i.state = 'accepted' and i.received_at < clock_timestamp() - interval '${LOST_AFTER}'
      and p.deleted_at is null and not exists (select from batched b where b.id = i.id)
      and ${hasNoJob("'parse_inbound:' || i.id")}
    order by i.id limit ${LOST_BATCH}
  ), queued as (
    ${addJobsFrom('lost', 'parse_inbound', 'inboundId', 's.payload_id::bigint')}
  )
  select (select count(*)::int from lost) as found from queued`
