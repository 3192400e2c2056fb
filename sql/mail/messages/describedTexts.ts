/**
 * Writes an SQL expression for the attachments of a message, with the state of each attachment's text.
 * @param message is the alias of the table `messages` in the SQL statement.
 */
export const describedWithTexts = (message: string): string => `coalesce((
  select jsonb_agg(
    case when x.state <> 'pending' then e.described || jsonb_build_object('text', jsonb_strip_nulls(jsonb_build_object(
      'state', x.state, 'chars', x.chars, 'reason', x.reason, 'omitted', x.omitted)))
    else e.described end order by e.place)
  from jsonb_array_elements(${message}.attachments) with ordinality e (described, place)
  left join attachment_texts x on x.message_row = ${message}.row and x.attachment_id = e.described ->> 'attachmentId'
  ), ${message}.attachments)`

/**
 * Writes an SQL expression like {@link describedWithTexts}, which reads the states only while an attachment waits. The
 * service copies the states into the stored descriptions after it has read the last attachment. If a process of an
 * earlier version reads the last attachment, the stored descriptions of the others stay without their states.
 */
export const currentAttachments = (message: string): string => `case
  when ${message}.attachments @> '[{"text": {"state": "pending"}}]' then ${describedWithTexts(message)}
  else ${message}.attachments end`
