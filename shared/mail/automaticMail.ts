/** Mail that no person wrote to this inbox alone: automatic answers (RFC 3834) and lists (RFC 2369, RFC 2919). */

/** Labels that tell agents such mail apart: one that answers it may talk to a machine, or to hundreds. */
const AUTO_REPLY_LABEL = 'auto-reply'
const LIST_LABEL = 'list'

type Header = { key: string; value: string }

/**
 * The labels that the header fields of a message give it.
 * @param headers names in lower case.
 */
export function automaticLabels(headers: readonly Header[]): string[] {
  const first = (name: string) =>
    headers
      .find(({ key }) => key === name)
      ?.value.trim()
      .toLowerCase()
  const labels: string[] = []
  if (isAutoReply(first)) labels.push(AUTO_REPLY_LABEL)
  const precedence = first('precedence')
  if (
    first('list-id') !== undefined ||
    first('list-post') !== undefined ||
    precedence === 'list' ||
    (precedence === 'bulk' && first('list-unsubscribe') !== undefined)
  ) {
    labels.push(LIST_LABEL)
  }
  return labels
}

/** RFC 3834 §5, and what programs send that are older than it or do not follow it. */
function isAutoReply(first: (name: string) => string | undefined): boolean {
  const autoSubmitted = first('auto-submitted')
  // Parameters may follow, and `no` is said by some who mean it.
  if (autoSubmitted !== undefined && !/^no\b/.test(autoSubmitted)) return true
  return (
    first('precedence') === 'auto_reply' ||
    ['x-autoreply', 'x-autorespond', 'x-auto-reply', 'x-autoreply-from'].some((name) => {
      const value = first(name)
      return value !== undefined && value !== 'no' && value !== 'false'
    })
  )
}
