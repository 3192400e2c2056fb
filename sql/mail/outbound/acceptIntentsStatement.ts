import { keyLifetime } from '../../account/idempotency.ts'
import { addPayloadsFrom } from '../../queue/jobs.ts'

/** Is the error of a recipient that a rule of the project refuses. */
const BLOCKED = 'blocked: a rule of the project stands against this address'
/** Is the error of a suppressed recipient. */
export const SUPPRESSED = 'suppressed: an earlier mail to this address came back'

/** Is the operation of the idempotency keys of send and reply. */
export const OPERATION = 'send'

/** Parses the send intents of live projects. The key share lock keeps each project from being deleted. */
const INTENTS = `
  given as (
    select i.*, decode(i.hash, 'hex') as hash_bytes, clock.now,
      to_char(clock.now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now_text,
      policy.send_policy, policy.approval_hours
    from jsonb_to_recordset($1::jsonb) as i (
      n int, project_id text, message_id text, hash text, thread_row bigint, new_thread_id text, from_address text,
      to_list text[], cc_list text[], bcc_list text[], subject text, body text, html text,
      in_reply_to text[], reference_ids text[], search tsvector, subject_key text, key text, request_hash text,
      answer text, attachments jsonb, refused text[], reasons text[], recipients int, unsubscribe jsonb,
      stored_bytes bigint, names jsonb, headers jsonb, send_at timestamptz, approval_id text, held boolean, draft_id text,
      draft_version int, traceparent text, calendar text),
    (select clock_timestamp()::timestamptz(3) as now) clock,
    lateral (
      select send_policy, approval_hours from projects p
      where p.id = i.project_id and p.deleted_at is null for key share) policy
  )`

/** Locks the threads of replies in the order of their rows, and drops replies to deleted threads. */
const PLACEABLE = `
  joined as (
    select row, id from threads where row in (select thread_row from given) order by row for no key update
  ), placeable as (
    select g.*, coalesce(j.id, g.new_thread_id) as thread_id
    from given g left join joined j on j.row = g.thread_row where g.thread_row is null or j.row is not null
  ), single as (
    -- This keeps the first intent of each idempotency key.
    select * from (
      select p.*, row_number() over (partition by project_id, key order by n) as place from placeable p
    ) p where key is null or place = 1
  )`

/**
 * Splits the intents by the daily limit $5, in the order of their numbers. An intent above the limit may fit if the
 * refused intents before it do not count (`is_open`). The statement then stores nothing, and the caller runs each
 * intent alone.
 */
const QUOTA = `
  priced as (
    select s.*, sum(recipients) over (partition by s.project_id order by n) + coalesce(q.used, 0) as used_then
    from single s left join send_quotas q on q.project_id = s.project_id and q.day = (s.now at time zone 'UTC')::date
  ), within as (
    select * from priced where $5::int is null or used_then <= $5::int
  ), beyond as (
    select * from priced where used_then > $5::int
  ), verdict as (
    select exists (
      select from beyond b where recipients + coalesce(
        (select max(used_then) from within w where w.project_id = b.project_id),
        (select min(used_then - recipients) from beyond o where o.project_id = b.project_id)) <= $5::int) as is_open
  ), affordable as (
    select * from within where not (select is_open from verdict)
  )`

/** Takes the drafts that are sent. Of two concurrent requests to send a draft, one finds it. */
const DRAFTS = `
  spent as (
    delete from drafts d using affordable a
    where d.id = a.draft_id and d.project_id = a.project_id and d.version = a.draft_version
    returning d.id
  )`

/**
 * Decides how each mail is sent: held for the owner, at its time, or at once. The mail of some apps is always held.
 * Under approve-new, a mail is held if it has an unknown recipient. A recipient is unknown if neither the address nor
 * the domain is known.
 */
const WAYS = `
  decided as (
    select a.*, case
      when held or send_policy = 'approve' or send_policy = 'approve-new' and exists (
        select from unnest(to_list || cc_list || bcc_list) r (address)
        where r.address <> all (a.refused) and not exists (
          select from known_recipients k where k.project_id = a.project_id
            and k.recipient in (lower(r.address), '@' || lower(split_part(r.address, '@', 2))))) then 'held'
      when send_at is not null then 'scheduled' else 'queued' end as status
    from affordable a where draft_id is null or draft_id in (select id from spent)
  )`

/** Takes the idempotency keys and stores their responses. It waits for a key that a concurrent request holds. */
const KEYS = `
  taken as (
    insert into idempotency_keys as k (project_id, operation, key, request_hash, result, created_at)
    select project_id, '${OPERATION}', key, decode(request_hash, 'hex'),
      json_build_object('threadId', thread_id, 'createdAt', now_text, 'status', status, 'answer', answer::json)::text, now
    from decided where key is not null order by project_id, key
    on conflict (project_id, operation, key) do update
      set request_hash = excluded.request_hash, result = excluded.result, created_at = excluded.created_at
      where k.created_at < excluded.created_at - ${keyLifetime('k.project_id')}
    returning project_id, key
  ), intent as (
    select * from decided where key is null or (project_id, key) in (select project_id, key from taken)
  )`

/**
 * Charges the daily quotas. The check send_quotas_within fails the statement if a concurrent statement used the quota
 * up.
 */
const CHARGES = `
  charged as (
    insert into send_quotas as q (project_id, day, used, allowed)
    select project_id, (min(now) at time zone 'UTC')::date, sum(recipients), $5::int from intent
    where $5::int is not null group by project_id order by project_id
    on conflict (project_id) do update set day = excluded.day, allowed = excluded.allowed,
      used = excluded.used + case when q.day = excluded.day then q.used else 0 end
  )`

/**
 * Gives each intent the rows of its message and its thread, in the order of the numbers. It uses no join, because the
 * planner would expect one row for a batch and scan the batch once for each intent. Without the join an intent among 60
 * takes 0.2 instead of 0.35 ms.
 */
const PLACED = `
  placed as materialized (
    select i.*, coalesce(i.thread_row, nextval('threads_row_seq')) as at_thread,
      nextval('messages_row_seq') as message_row
    from (select * from intent order by n) i
  )`

/** Starts the threads of new conversations, and extends the threads of replies. */
const THREADS = `
  begun as (
    insert into threads (row, id, project_id, subject, created_at, updated_at, message_count, subject_key)
    overriding system value
    select at_thread, new_thread_id, project_id, subject, now, now, 1, decode(subject_key, 'hex')
    from placed where thread_row is null
  ), grown as (
    update threads t set message_count = t.message_count + g.added, updated_at = greatest(t.updated_at, g.now)
    from (select thread_row, count(*) as added, max(now) as now from placed
          where thread_row is not null group by thread_row) g
    where t.row = g.thread_row
  )`

/** Stores the messages and their Message-IDs. */
const MESSAGES = `
  stored as (
    insert into messages (
      row, project_id, thread_row, direction, message_id, message_id_hash, in_reply_to, reference_ids, from_addresses,
      to_addresses, cc_addresses, bcc_addresses, subject, text_body, html_body, text_bytes, attachments, labels,
      delivery_status, created_at, added_at, search, stored_bytes, send_at)
    overriding system value
    select message_row, project_id, at_thread, 'sent', message_id, hash_bytes, in_reply_to, reference_ids, array[from_address],
      to_list, cc_list, bcc_list, subject, body, html, octet_length(body) + octet_length(attachments::text),
      attachments, array['sent'] || case status when 'queued' then '{}' else array[status] end, status, now, now, search,
      stored_bytes, send_at
    from placed
  ), known as (
    insert into thread_identifiers (project_id, message_id_hash, thread_row)
    select project_id, hash_bytes, at_thread from placed
  )`

/**
 * Stores the outbound mails with their recipients. Refused recipients have failed from the start. A held mail is never
 * due.
 */
const OUTBOUND = `
  outgoing as (
    insert into outbound_mails (
      message_row, project_id, state, next_attempt_at, accepted_at, unsubscribe, names, headers,
      traceparent)
    select message_row, project_id, case status when 'held' then 'held' else 'queued' end,
      case status when 'held' then 'infinity' else coalesce(send_at, now) end,
      coalesce(send_at, now), unsubscribe, names, headers, traceparent
    from placed
  ), addressed as (
    insert into outbound_recipients (message_row, address, state, error)
    select distinct message_row, a, case when a = any (refused) then 'failed' else 'queued' end,
      case reasons[array_position(refused, a)] when 'rule' then '${BLOCKED}' when 'suppressed' then '${SUPPRESSED}' end
    from placed, unnest(to_list || cc_list || bcc_list) a
  )`

const ATTACHMENTS = `
  filed as (
    insert into message_attachments (message_row, attachment_id, bytes, blob)
    select p.message_row, a.id, substring($4::bytea from a.start for a.length), a.blob
    from unnest($2::int[], $3::text[], $6::int[], $7::int[], $8::bytea[]) a (n, id, start, length, blob)
    join placed p using (n)
  )`

/**
 * Records the invitations that are sent. A worker reads them into the project's calendar when their mail is being sent.
 */
const CALENDARS = `
  planned as (
    insert into attachment_texts (message_row, attachment_id, project_id)
    select message_row, calendar, project_id from placed where calendar is not null
  )`

/**
 * Queues the sending of each mail. A held mail gets an approval request, with the job that announces it. The reader of
 * invitations runs at once, because it reads other files too, and knows when the next file may be read.
 */
const JOBS = `
  requested as (
    insert into approvals (id, project_id, kind, subject, requested_at, expires_at)
    select approval_id, project_id, 'mail', message_id, now, now + make_interval(hours => approval_hours)
    from placed where status = 'held'
    returning id
  ), due as (
    select 'send_mail' as task, json_build_object('messageRow', message_row::text) as payload,
      'send_mail:' || message_row as key, send_at as run_at
    from placed where status <> 'held'
    union all
    select 'announce_approval', json_build_object('approvalId', id), 'announce_approval:' || id, null from requested
    union all
    select 'read_attachments', json_build_object('projectId', project_id), 'read_attachments:' || project_id, null
    from placed where calendar is not null and status <> 'held' group by project_id
  ), jobs as (
    ${addPayloadsFrom('due', { runAt: 's.run_at' })}
  )`

/** Returns one row per placeable intent. The join with `jobs` makes Postgres run add_jobs. */
const OUTCOMES = `
  select p.n, p.thread_id, p.now_text as created_at, s.n is not null as accepted, s.status,
    p.n in (select n from beyond) or (p.project_id, p.key) in (select project_id, key from beyond) as over_quota,
    (select is_open from verdict) as is_open
  from placeable p left join placed s using (n) cross join jobs`

/**
 * The statement that accepts send intents. Each step reads the rows of the one before and drops some:
 *
 *   given ─ placeable ─ single ─ affordable ─ decided ─ intent ─ placed ┬ begun, grown, stored, known, outgoing, …
 *   live    thread is   first    within the   draft is  key is   has    └ requested, due ─ jobs
 *   project not deleted of a key daily limit  there     free     rows
 *
 * $1 intents (jsonb); $2, $3 attachments: number of the intent, id; $4, $6, $7 their packed bytes, $8 their objects;
 * $5 daily limit or null.
 */
export const ACCEPT_INTENTS = `with ${[
  INTENTS,
  PLACEABLE,
  QUOTA,
  DRAFTS,
  WAYS,
  KEYS,
  CHARGES,
  PLACED,
  THREADS,
  MESSAGES,
  OUTBOUND,
  ATTACHMENTS,
  CALENDARS,
  JOBS,
].join(',')} ${OUTCOMES}`
