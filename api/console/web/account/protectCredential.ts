import { ask, at } from '../kit/ask.ts'
import { choice, field, openDialog } from '../kit/dialog.ts'
import type { Credential } from '../kit/types.ts'
import { toast } from '../kit/ui.ts'

/** The readers of a secret, as the console names them. */
export const READERS = {
  agent: 'the agent and you',
  owner: 'you alone; the agent uses it unseen',
} as const

/** Opens the form for the readers of a credential and its allowed hosts. */
export const protectCredential = (
  projectId: string,
  { name, reveal, allowedHosts }: Credential,
  refresh: () => Promise<void>,
): void => {
  const readers = Object.entries(READERS).map(([value, label]) => [value, label] as const)
  openDialog({
    title: `Protect ${name}`,
    action: 'Save',
    body: [
      // The first option is the chosen one.
      choice(
        'Read by',
        'reveal',
        reveal === 'owner' ? readers.toReversed() : readers,
        'Codes and older versions are read by the same.',
      ),
      field(
        'Allowed hosts',
        'hosts',
        { value: allowedHosts.join(' '), maxlength: 2_000 },
        'Where the agent may use it over https, such as api.example.com or *.example.com. Separate them by blanks.',
      ),
    ],
    act: async (form) => {
      const hosts = String(form.get('hosts') ?? '')
        .split(/[\s,]+/)
        .filter((host) => host !== '')
      const isChanged = hosts.join(' ') !== allowedHosts.join(' ')
      await ask(at`/projects/${projectId}/v0/vault/-?name=${name}`, {
        method: 'PATCH',
        body: { reveal: form.get('reveal'), ...(isChanged ? { allowedHosts: hosts } : {}) },
      })
      await refresh()
      return () => toast('Saved')
    },
  })
}
