/**
 * Writes a sentence about each reason for the refusal of a payment. The sentence tells the cause and the next step of a
 * seller or payer.
 */
import type { UsdcNetwork } from './usdc.ts'
import type { X402Reason } from './x402.ts'

type Detail = {
  network: UsdcNetwork
  /** Explains the reason in more detail, for example with the name of the payment's malformed member. */
  detail?: string | null | undefined
}

const MESSAGES: Record<X402Reason, (network: UsdcNetwork) => string> = {
  insufficient_funds: () => 'The payer has too little USDC. Fund the wallet, then sign again.',
  invalid_exact_evm_payload_authorization_valid_after: () =>
    'The authorization is not valid yet. Check the clock of the payer.',
  invalid_exact_evm_payload_authorization_valid_before: () =>
    'The authorization has expired, or expires within 6 seconds. Sign again.',
  invalid_exact_evm_payload_authorization_value: () =>
    'The signed value must equal the price exactly. Ask for a new 402 and sign its amount.',
  invalid_exact_evm_payload_signature: ({ eip712Name, eip712Version, chainId }) =>
    `The signature is not that of the payer. The EIP-712 domain is "${eip712Name}", version "${eip712Version}", chain id ${chainId}.`,
  invalid_exact_evm_payload_recipient_mismatch: () =>
    'The authorization pays another address. Ask for a new 402 and sign its payTo.',
  invalid_network: ({ network, caip2 }) =>
    `Payments are settled on ${network} (${caip2}) only. Set network to it.`,
  invalid_payload: () => 'The payment is malformed. Send the object that the wallet made.',
  invalid_payment: () => 'The payer and the recipient must differ.',
  invalid_payment_requirements: ({ usdcAddress }) =>
    `The requirements must be of the payment's version, in USDC (${usdcAddress}), and pay the project's own payTo.`,
  invalid_scheme: () => 'The scheme must be "exact".',
  unsupported_scheme: () => 'The scheme must be "exact".',
  invalid_x402_version: () => 'x402Version must be 1 or 2.',
  invalid_transaction_state: () =>
    'The transaction failed on chain and moved no money. Ask for a new 402 and sign again.',
  unexpected_verify_error: () =>
    'The payment could not be checked, and nothing was charged. Send the same payment again.',
  unexpected_settle_error: () =>
    'The payment could not be settled, and nothing was charged. Ask for a new 402 and sign again.',
  invalid_exact_evm_payload_undeployed_smart_wallet: () =>
    'The smart wallet is not deployed. Deploy it, or send an ERC-6492 signature.',
  invalid_exact_evm_nonce_already_used: () =>
    'The authorization was used before. Ask for a new 402 and sign again.',
  invalid_exact_evm_token_name_mismatch: ({ eip712Name }) =>
    `extra.name must be "${eip712Name}", the EIP-712 name of USDC on this chain.`,
  invalid_exact_evm_token_version_mismatch: ({ eip712Version }) =>
    `extra.version must be "${eip712Version}", the EIP-712 version of USDC on this chain.`,
  unsupported_payload_type: () =>
    'Only EIP-3009 authorizations are settled. Leave out extra.assetTransferMethod, or set it to "eip3009".',
  payment_identifier_conflict: () =>
    'Another payment of this project has the payment-identifier. Send a new one.',
  eip6492_factory_not_allowed: () =>
    'The factory of the smart wallet is not in WALLET_FACTORIES. Deploy the wallet first.',
  smart_wallet_deployment_failed: () =>
    'The smart wallet cannot be deployed with its factory call.',
  duplicate_settlement: () =>
    'The payment was used before: one payment releases a resource once. Ask for a new 402 and sign again.',
  settlement_limit_reached: () =>
    'The settlements or the gas of this project are used up for the day. Send the same payment on the next UTC day.',
  smart_wallet_suspended: () =>
    'This wallet, or its code, reverted on chain in the last six hours. Pay from another wallet.',
  resource_of_another_project: () =>
    'Another project sells this resource. Sell a resource of your own.',
  settlement_pending: () =>
    'The payment is on its way. Send the same payment again, and sign no new one.',
}

/** Returns the sentence that tells a seller or payer why the service refused a payment. */
export function reasonMessage(reason: X402Reason, { network, detail }: Detail): string {
  const message = MESSAGES[reason](network)
  return detail ? `${message} (${detail})` : message
}
