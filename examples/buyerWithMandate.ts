/**
 * Buys a resource without a signing key of its own, because the service pays within the owner's spending mandate. The
 * environment variable KEY is an API key with the scope purse:pay.
 */
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000' } = process.env
const { URL: url = 'http://127.0.0.1:4000/weather' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })
const why = 'The user asked for the weather.'
const answer = await purser.fetch(url, { maxAmount: '0.01', why })
console.log(answer.status, await answer.text())
