/** Recognises automatic replies (RFC 3834) and list mail (RFC 2369, RFC 2919). */

/**
 * Names the label of automatic replies. LIST_LABEL is the label of list mail. These labels warn an agent that its reply
 * would reach a machine or hundreds of people.
 */
const AUTO_REPLY_LABEL = 'auto-reply'
const LIST_LABEL = 'list'

type Header = { key: string; value: string }

/**
 * Returns the labels for automatic replies and list mail by the header fields of a message.
 * @param headers lists the header fields of the message, with names in lower case.
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

/** Recognises an automatic reply by RFC 3834 §5, and by the header fields of mail programs that ignore RFC 3834. */
function isAutoReply(first: (name: string) => string | undefined): boolean {
  const autoSubmitted = first('auto-submitted')
  // The keyword in the field Auto-Submitted may have parameters. The keyword `no` means that a person wrote the
  // message.
  if (autoSubmitted !== undefined && !/^no\b/.test(autoSubmitted)) return true
  return (
    first('precedence') === 'auto_reply' ||
    ['x-autoreply', 'x-autorespond', 'x-auto-reply', 'x-autoreply-from'].some((name) => {
      const value = first(name)
      return value !== undefined && value !== 'no' && value !== 'false'
    })
  )
}
