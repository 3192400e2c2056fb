import { ask, at, changesOf } from '../../kit/ask.ts'
import { choice, field, openDialog } from '../../kit/dialog.ts'
import { toast } from '../../kit/ui.ts'
import type { Credential } from './credential.ts'

/** Describes in words who can read a secret. */
export const READERS = {
  agent: 'the agent and you',
  owner: 'you alone; the agent uses it unseen',
} as const

/**
 * Maps each limit on the use of a credential to its label at the console. The pattern `between` matches the text
 * between two entries. Some entries, such as paths, may contain a comma, so only blanks separate these.
 */
export const BOUND_FIELDS = [
  {
    bound: 'allowedHosts',
    label: 'Allowed hosts',
    hint: 'Where the agent may use it over https, such as api.example.com or *.example.com. Separate them by blanks.',
    between: /[\s,]+/,
  },
  {
    bound: 'allowedMethods',
    label: 'Allowed methods',
    hint: 'Of GET, HEAD, POST, PUT, PATCH and DELETE.',
    between: /[\s,]+/,
  },
  {
    bound: 'allowedPaths',
    label: 'Allowed paths',
    hint: 'Such as /v1/charges, with everything below it. A single / is every path. Separate them by blanks.',
    between: /\s+/,
  },
  {
    bound: 'placement',
    label: 'Placement',
    hint: 'Where the secret may stand: header:NAME, basic, query:NAME, form:NAME, json:/NAME, path:/PREFIX, body.',
    between: /\s+/,
  },
] as const

/** Opens the form that sets who may read a credential, and for which requests it may be used. */
export const protectCredential = (
  projectId: string,
  credential: Credential,
  refresh: () => Promise<void>,
): void => {
  const { name, reveal } = credential
  const readers = Object.entries(READERS).map(([value, label]) => [value, label] as const)
  openDialog({
    title: `Protect ${name}`,
    action: 'Save',
    body: [
      // The present setting of `reveal` (who may read the secret) comes first in the list, because the form selects the
      // first option.
      choice(
        'Read by',
        'reveal',
        reveal === 'owner' ? readers.toReversed() : readers,
        'Codes and older versions are read by the same.',
      ),
      ...BOUND_FIELDS.map(({ bound, label, hint }) =>
        field(label, bound, { value: credential[bound].join(' '), maxlength: 8_000 }, hint),
      ),
    ],
    act: async (form) => {
      const entries = (bound: string, between: RegExp) =>
        String(form.get(bound) ?? '')
          .split(between)
          .filter((entry) => entry !== '')
      const body = changesOf(credential, {
        reveal: form.get('reveal'),
        ...Object.fromEntries(
          BOUND_FIELDS.map(({ bound, between }) => [bound, entries(bound, between)]),
        ),
      })
      if (Object.keys(body).length === 0) return
      await ask(at`/projects/${projectId}/v0/vault/-?name=${name}`, { method: 'PATCH', body })
      await refresh()
      return () => toast('Saved')
    },
  })
}
