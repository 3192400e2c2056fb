import { ask, at } from '../../kit/ask.ts'
import { choice, field, openDialog } from '../../kit/dialog.ts'
import type { Project } from '../../kit/types.ts'
import { toast } from '../../kit/ui.ts'

/**
 * Lists the types of credentials that the form can store. Each type of credential has a secret field and a visible
 * field.
 */
const TYPES = {
  LOGIN: { label: 'Login', secret: 'password', shown: 'username' },
  API_KEY: { label: 'API key', secret: 'key', shown: 'service' },
  CUSTOM: { label: 'Other', secret: 'value', shown: 'note' },
} as const

type FormType = keyof typeof TYPES

/**
 * Opens the form that stores a credential. If a credential with the given name already exists, it gets a new version.
 */
export const storeCredential = (project: Project, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Store credential',
    action: 'Store',
    body: [
      field(
        'Name',
        'name',
        { required: true, maxlength: 128 },
        'An existing name gets a new version, with these fields alone.',
      ),
      choice(
        'Type',
        'type',
        Object.entries(TYPES).map(([type, { label }]) => [type, label] as const),
      ),
      field('Username or service', 'shown', { maxlength: 200 }, 'Stored as plain text.'),
      field('Secret', 'secret', { required: true, type: 'password' }, 'Stored encrypted.'),
      field(
        'TOTP secret',
        'totp',
        { type: 'password' },
        'Base32, or an otpauth:// URI. The agent reads codes, never the secret.',
      ),
    ],
    act: async (form) => {
      const type = String(form.get('type')) as FormType
      const { secret, shown } = TYPES[type]
      const totp = String(form.get('totp') ?? '').trim()
      const note = String(form.get('shown') ?? '').trim()
      await ask(at`/projects/${project.projectId}/v0/vault/-?name=${String(form.get('name'))}`, {
        method: 'PUT',
        body: {
          type,
          data: { [secret]: form.get('secret'), ...(totp === '' ? {} : { totp }) },
          metadata: note === '' ? {} : { [shown]: note },
        },
      })
      await refresh()
      return () => toast('Stored')
    },
  })
