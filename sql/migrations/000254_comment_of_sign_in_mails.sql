-- In a full table, a request whose address nobody has yields. This search does not look at the requested address.
comment on table sign_in_mails is 'Addresses that asked for a sign-in link. Most rows may name nobody: no answer may depend on this.';
