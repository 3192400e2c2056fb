/** Exported functions that read nothing of a stranger, or only through a reader of the table. The reason stands first. */
const BY_REASON: Record<string, string> = {
  'an error': `mail/search/searchQuery.ts SearchQueryError, vault/bounds.ts OutOfBoundsError,
    vault/credential.ts CredentialInputError, vault/envelope.ts BrokenSealError, vault/envelope.ts UnknownMasterKeyError,
    vault/maskSecrets.ts TooManyLayersError, vault/totp.ts TotpSecretError, till/resourceUrl.ts ResourceUrlError,
    till/usdc.ts UsdcAmountError, mail/reports/aggregateReport.ts ReportError, mail/http/signedMail.ts SignedMailError,
    oauth/clientMetadata.ts ClientMetadataError`,
  'it reads words, numbers or keys of ours': `mail/parse/authentication.ts isUnsure, mail/compose/bounceAddress.ts bounceKeys, mail/reservedAddresses.ts reportAddresses, oauth/oauthScopes.ts offeredScopes, oauth/oauthTokens.ts newToken, oauth/resource.ts isOAuthOn,
    oauth/resource.ts mcpResource, oauth/resource.ts resourceMetadataUrl, people/companyPage.ts companyPage,
    people/roles.ts isAtLeast, people/signInLink.ts signInTokens, people/signInLink.ts signInUrl, mail/http/signedMail.ts domainSecret,
    mail/compose/dkim.ts dkimRecord, mail/visibleText/hiddenStyle.ts isSeen, mail/visibleText/hiddenStyle.ts isUnseen, mail/mailDomain.ts afterCheck,
    mail/mailDomain.ts domainRecords, mail/mailDomain.ts verdictOf, mail/mailRetry.ts mailGivenUpAfter,
    mail/mailRetry.ts nextMailDelayS, mail/replyText/markers.ts oneOf, vault/credential.ts describeShape,
    vault/envelope.ts Keyring, vault/envelope.ts deriveKey, vault/envelope.ts masterKey,
    vault/envelope.ts masterKeyCheck, vault/totp.ts totpCode, till/reasonMessage.ts reasonMessage,
    purse/refusal.ts refusalText, purse/sellerSettlement.ts isUndecided, till/receiptKey.ts base64url, till/receiptKey.ts didWeb, till/receiptKey.ts publicReceiptKey,
    till/receiptKey.ts receiptDidDocument, till/receiptKey.ts receiptJwks, till/receiptKey.ts receiptKey,
    till/usdc.ts formatUsdc, till/usdc.ts usdcNetworkOfChainId, till/x402.ts versionOf, till/x402.ts wireReason`,
  'it writes what a reader has checked and bounded': `mail/compose/approvalNotice.ts approvalNotice, mail/compose/serviceContent.ts serviceContent, mail/compose/signInMail.ts signInMail,
    mail/compose/bounceAddress.ts bounceAddress, mail/compose/bounceAddress.ts isTagOf, mail/compose/composeMail.ts composeMail,
    mail/compose/customHeaders.ts customFields, mail/parse/reduceBounce.ts reduceBounce, mail/compose/unsubscribe.ts unsubscribeFields,
    mail/mtaSts.ts policyText, mail/reservedAddresses.ts reservedAddresses, till/authorization.ts authorizationDigest, till/authorization.ts authorizationTypedData, till/authorization.ts cancellationDigest,
    purse/paymentHeader.ts signPayment, purse/signIn.ts signInHeader, purse/termsHash.ts termsHash,
    till/ed25519.ts signEd25519, till/jws.ts signJws, till/receipt.ts receiptText, till/receipt.ts signReceipt,
    till/signer.ts signerOf, till/x402.ts buildChallenge, till/x402.ts encodePaymentResponse,
    till/x402.ts settleResponse, till/x402v2.ts encodeHeader, till/x402v2.ts encodePaymentRequired,
    till/x402v2.ts toRequirementV2`,
  'it compares a word with a list of a few': `mail/parse/authentication.ts authenticationWord,
    mail/parse/authentication.ts isForged, mail/parse/dsn.ts isAddressDead, vault/signText.ts signingField`,
  'it does no more than readers of the table, one after the other': `mail/codes/likelihood.ts likelihood, mail/codes/codeEvidence.ts CodeLine,
    mail/codes/codeEvidence.ts evidenceOf, mail/codes/codeEvidence.ts evidenceOfMail, mail/emailRules.ts admit,
    mail/emailRules.ts isRefused, mail/search/indexedMail.ts indexed, till/authorization.ts verifyAuthorization,
    vault/signText.ts signEd25519`,
  'it judges one text of at most 8 KB that keptProof has bounded, by jose or viem':
    'purse/offerReceipt.ts judgeProof',
  'two lists of at most 40 entries: areWithin and commonBounds measure it': `vault/narrowing.ts common,
    vault/narrowing.ts isWithin`,
}

/** The names of those exports, as the table of readers writes them. */
export const OTHER_EXPORTS: ReadonlySet<string> = new Set(
  Object.values(BY_REASON).flatMap((names) => names.split(/,\s+/)),
)
