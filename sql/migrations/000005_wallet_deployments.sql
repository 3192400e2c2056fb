-- Holds the call of an allowed factory that deploys the payer's wallet in the transaction of the payment (ERC-6492).
alter table payments
  add column factory text,
  add column factory_data text,
  add check ((factory is null) = (factory_data is null));

-- The column erc6492 is not needed any more, because the stored claim (the data of the payment) holds its value.
alter table payment_checks drop column erc6492;
