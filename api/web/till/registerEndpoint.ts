import { ask, at } from '../kit/ask.ts'
import { field, openDialog, showOnce, textArea } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import type { Endpoint, Project } from '../kit/types.ts'
import { toast } from '../kit/ui.ts'

/** Opens the form in which a seller changes an endpoint. The form cannot change the URL of the endpoint. */
export const changeEndpoint = (path: string, one: Endpoint, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Change endpoint',
    action: 'Save',
    body: [
      h('p', {}, h('code', {}, one.urlPattern)),
      field('Price in USDC', 'priceUsdc', {
        ...{ required: true, inputmode: 'decimal', value: one.priceUsdc },
      }),
      textArea('Description', 'description', { maxlength: 500, rows: 3 }, one.description ?? ''),
      field(
        'Webhook URL',
        'webhookUrl',
        { type: 'url', maxlength: 2048, value: one.webhookUrl ?? '' },
        'Empty: no webhook. Deliveries under way keep their URL.',
      ),
    ],
    act: async (form) => {
      const read = (name: string) => String(form.get(name) ?? '').trim()
      const now = {
        priceUsdc: read('priceUsdc'),
        description: read('description') || null,
        webhookUrl: read('webhookUrl') || null,
      }
      // The console sends only the changed fields, because the seller may have changed other fields of the endpoint
      // since the form opened.
      const changed = Object.entries(now).filter(
        ([name, value]) => (value ?? '') !== shown(one[name as keyof typeof now]),
      )
      if (changed.length === 0) return
      const { webhookSecret } = await ask<{ webhookSecret?: string }>(path, {
        method: 'PATCH',
        body: Object.fromEntries(changed),
      })
      await refresh()
      if (webhookSecret === undefined) return () => toast('Saved')
      return () =>
        showOnce('Webhook secret', webhookSecret, 'The receiver checks signatures with it.')
    },
  })

/** Returns a stored value as a form shows the value: a text area changes each line break to a line feed. */
const shown = (value: string | null): string => (value ?? '').replaceAll(/\r\n?/g, '\n').trim()

/** Opens the form that registers an endpoint, or changes the price of a URL that is already registered. */
export const registerEndpoint = (project: Project, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Register endpoint',
    action: 'Register',
    body: [
      field(
        'URL',
        'urlPattern',
        { required: true, type: 'url', maxlength: 2048 },
        "The payer's URL, without a query. A registered URL gets the new price.",
      ),
      field(
        'Price in USDC',
        'priceUsdc',
        { required: true, inputmode: 'decimal' },
        'Such as 0.01.',
      ),
      field('Description', 'description', { maxlength: 500 }, 'Payers see it.'),
      field('Webhook URL', 'webhookUrl', { type: 'url', maxlength: 2048 }, 'Gets the receipts.'),
    ],
    act: async (form) => {
      const optional = (name: string) => {
        const value = String(form.get(name) ?? '').trim()
        return value === '' ? {} : { [name]: value }
      }
      const made = await ask<Endpoint & { webhookSecret?: string }>(
        at`/projects/${project.projectId}/v0/sellers/endpoints`,
        {
          method: 'PUT',
          body: {
            urlPattern: form.get('urlPattern'),
            priceUsdc: form.get('priceUsdc'),
            ...optional('description'),
            ...optional('webhookUrl'),
          },
        },
      )
      await refresh()
      const { webhookSecret } = made
      if (webhookSecret === undefined) return () => toast('Registered')
      return () =>
        showOnce('Webhook secret', webhookSecret, 'The receiver checks signatures with it.')
    },
  })
