-- These columns hold the purse's signature that cancels an open authorization (EIP-3009), and the time at which a gas
-- wallet last sent it.
alter table purchases add column cancel_signature text, add column cancel_sent_at timestamptz(3);
