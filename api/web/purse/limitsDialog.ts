import { ask, changesOf } from '../kit/ask.ts'
import { field, openDialog } from '../kit/dialog.ts'
import { toast } from '../kit/ui.ts'
import type { Purse } from './types.ts'

/** Opens the form that sets the highest balance of a purse, and the address that gets any USDC above this balance. */
export const limitsDialog = (base: string, purse: Purse, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Limits of the purse',
    action: 'Save',
    body: [
      field(
        'Low, in USDC',
        'low',
        { inputmode: 'decimal', maxlength: 20, value: purse.lowUsdc ?? '' },
        'An event tells when the balance falls below. Empty: none does.',
      ),
      field(
        'Most that it keeps, in USDC',
        'max',
        { inputmode: 'decimal', maxlength: 20, value: purse.maxUsdc ?? '' },
        'The rest goes to your address. Empty: it keeps all.',
      ),
      field(
        'Your address',
        'payoutAddress',
        { maxlength: 42, value: purse.payout.next?.address ?? purse.payout.address ?? '' },
        'A new address counts after 24 hours, and the one before it until then. Empty: nothing leaves.',
      ),
    ],
    act: async (form) => {
      const given = (name: string) => {
        const text = String(form.get(name) ?? '').trim()
        return text === '' ? null : text
      }
      const body = changesOf(
        {
          low: purse.lowUsdc,
          max: purse.maxUsdc,
          payoutAddress: purse.payout.next?.address ?? purse.payout.address,
        },
        { low: given('low'), max: given('max'), payoutAddress: given('payoutAddress') },
      )
      if (Object.keys(body).length === 0) return
      await ask(`${base}/purse`, { method: 'PATCH', body })
      await refresh()
      return () => toast('Saved')
    },
  })
