import { type Static, Type as t } from '@sinclair/typebox'
import { LABELS_MAX } from '../../../sql/mail/messages/messageLabels.ts'
import { badRequest } from '../../http/errors.ts'

const LABEL_MAX_LENGTH = 64
export const Label = t.String({ minLength: 1, maxLength: LABEL_MAX_LENGTH })

export const LabelChange = t.Object({
  addLabels: t.Optional(t.Array(Label, { maxItems: LABELS_MAX })),
  removeLabels: t.Optional(t.Array(Label, { maxItems: LABELS_MAX })),
})

/** Describes the query parameter `labels` of a list. */
export const LabelsQuery = t.String({
  maxLength: 4_000,
  description: 'Separate the labels with commas. A message must carry all of these labels.',
  examples: ['received,unread'],
})

/** Reads the labels in the query parameter `labels` of a list. @throws {ApiError} 400 for an invalid label. */
export function readLabels(query: string | undefined): string[] {
  if (query === undefined || query === '') return []
  const labels = [...new Set(query.split(',').map((label) => label.trim()))]
  if (
    labels.length > LABELS_MAX ||
    labels.some((label) => label === '' || label.length > LABEL_MAX_LENGTH)
  ) {
    throw badRequest(
      `labels must be at most ${LABELS_MAX} labels of 1 to ${LABEL_MAX_LENGTH} characters, separated by commas`,
    )
  }
  return labels
}

/**
 * Tells whether the query parameter `labels` can name a label. It cannot name a label with a comma, or with a space at
 * one end, which an older version of the service accepted.
 */
const isNameable = (label: string): boolean => !label.includes(',') && label.trim() === label

/**
 * Reads which labels a request adds to a message, and which labels it removes. If a label is in both lists, the request
 * removes the label. @throws {ApiError} 400 for an invalid label.
 */
export function readLabelChange(body: Static<typeof LabelChange>): {
  add: string[]
  remove: string[]
} {
  const add = [...new Set(body.addLabels ?? [])]
  const remove = new Set(body.removeLabels ?? [])
  if (add.length === 0 && remove.size === 0) {
    throw badRequest('addLabels or removeLabels must name at least one label')
  }
  for (const [n, label] of (body.addLabels ?? []).entries()) {
    if (isNameable(label)) continue
    throw badRequest(
      `addLabels[${n}] must have no comma (the filter separates by it), and no blanks around it`,
    )
  }
  return { add, remove: [...remove] }
}

/** Makes the 400 error for a change that gives a message more than `LABELS_MAX` labels. */
export const tooManyLabels = () =>
  badRequest(`addLabels must leave at most ${LABELS_MAX} labels on the message`)
