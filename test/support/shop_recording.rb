# frozen_string_literal: true

require_relative "recording_builder"

# A recording that looks like a small web shop's, the same each time: what views and commands are tested on.
module ShopRecording
  MAIN = ["Object#main", "/srv/app/bin/server.rb", 1, 3].freeze
  RACK = ["Rack::MethodOverride#call", "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack/method_override.rb", 18, 24].freeze
  CREATE = ["Shop::CheckoutController#create", "/srv/app/app/controllers/checkout_controller.rb", 10, 14].freeze
  TOTAL = ["Shop::Checkout::Cart#total_with_discounts_and_taxes", "/srv/app/app/models/shop/checkout/cart.rb", 40, 44].freeze
  EACH = ["Array#each", "", 0, 0, 1].freeze
  BLOCK = ["block in Shop::Checkout::Cart#total_with_discounts_and_taxes", "/srv/app/app/models/shop/checkout/cart.rb", 43, 43].freeze
  FIB = ["Shop::Fib.fib", "/srv/app/lib/fib.rb", 2, 3].freeze
  FIB_LATER = ["Shop::Fib.fib", "/srv/app/lib/fib.rb", 2, 5].freeze
  JAPANESE = ["Shop::カート#合計", "/srv/app/lib/cart_ja.rb", 7, 8].freeze
  HOSTILE = ["Evil#\e[2Jname\n;x", "/srv/app/lib/evil.rb", 1, 1].freeze

  def self.bytes(compress: false, **head)
    RecordingBuilder.build(compress: compress, **head) do |segment|
      segment.thread 1, "main"
      segment.thread 2, "puma srv tp 001"
      request = [MAIN, RACK, CREATE]
      segment.row stack: [*request, TOTAL, EACH, BLOCK], wall: 400_000, cpu: 390_000, captures: 400
      segment.row stack: [*request, TOTAL, EACH, BLOCK, ["BigDecimal#+", "", 0, 0, 1]], wall: 300_000, cpu: 300_000, captures: 300
      segment.row stack: [*request, TOTAL, EACH, BLOCK, ["(marking)", "", 0, 0, 2]], wall: 100_000, cpu: 100_000, captures: 100
      segment.row stack: [*request, FIB, FIB, FIB_LATER, FIB], wall: 150_000, cpu: 150_000, captures: 150
      segment.row stack: [*request, FIB, FIB], wall: 20_000, cpu: 19_000, captures: 20
      segment.row stack: [*request, JAPANESE], wall: 30_000, cpu: 30_000, captures: 30
      segment.row stack: [*request, HOSTILE], wall: 1_000, cpu: 1_000, captures: 1
      segment.row stack: [MAIN, ["IO#read", "", 0, 0, 1]], state: 2, wall: 500_000, cpu: 1_000, captures: 1
      segment.row thread: 2, stack: [["Kernel#sleep", "", 0, 0, 1]], state: 2, wall: 1_400_000, cpu: 0, captures: 1
      segment.row thread: 2, stack: [["Worker#run", "/srv/app/lib/worker.rb", 1, 9], FIB], state: 1, wall: 60_000, cpu: 0, captures: 60
      segment.open thread: 2, stack: [["Kernel#sleep", "", 0, 0, 1]], state: 2, wall: 13_000, cpu: 0
    end
  end
end
