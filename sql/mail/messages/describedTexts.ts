/**
 * Writes an SQL expression for the attachments of a message, with the state of each attachment's text.
 * @param message is the alias of the table `messages` in the SQL statement.
 */
export const describedWithTexts = (message: string): string => `coalesce((
  select jsonb_agg(
    case when own_text.state <> 'pending'
      then described || jsonb_build_object('text', jsonb_strip_nulls(jsonb_build_object('state', own_text.state,
        'chars', own_text.chars, 'reason', own_text.reason, 'omitted', own_text.omitted)))
      else described end order by place)
  from jsonb_array_elements(${message}.attachments) with ordinality own_attachment (described, place)
  left join attachment_texts own_text
    on own_text.message_row = ${message}.row and own_text.attachment_id = described ->> 'attachmentId'
  ), ${message}.attachments)`

/**
 * Writes an SQL expression like {@link describedWithTexts}, which reads the states only while an attachment waits to be
 * read. After it has read the last attachment, the service copies the states into the stored descriptions. A process of
 * an earlier version does not copy them, so descriptions of messages that it finished lack the states.
 */
export const currentAttachments = (message: string): string => `case
  when ${message}.attachments @> '[{"text": {"state": "pending"}}]' then ${describedWithTexts(message)}
  else ${message}.attachments end`
