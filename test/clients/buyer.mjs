/** Buys at a URL with an unmodified x402-fetch, and checks the receipt with the published keys of the service. */
import {
  extractReceiptFromResponse,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { privateKeyToAccount } from 'viem/accounts'
import { decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch'

const { PAYER_KEY, URL: url = 'http://127.0.0.1:4000/weather' } = process.env
const pay = wrapFetchWithPayment(fetch, privateKeyToAccount(PAYER_KEY))
const response = await pay(url)
console.log(response.status, await response.clone().text())
console.log('paid:', decodeXPaymentResponse(response.headers.get('x-payment-response')))
const receipt = extractReceiptFromResponse(response)
console.log('receipt verified:', await verifyReceiptSignatureJWS(receipt))
