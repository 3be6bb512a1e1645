# frozen_string_literal: true

require "date"
require "digest"
require "json"
require "openssl"
require "psych"
require "strscan"
require "zlib"

# C extensions and the libraries they call: JSON, zlib, OpenSSL, libyaml, strscan, date, digests.
#
#   ruby benchmarks/programs/extensions.rb [AMOUNT]     # AMOUNT: turns (default 50)
module Programs
  class Extensions
    ROWS = Array.new(60) do |i|
      { "id" => i, "name" => "row #{i}", "tags" => %w[a b c].first(i % 4), "ratio" => i / 7.0 }
    end
    TEXT = (ROWS.map(&:to_s) * 10).join("\n")
    private_constant :ROWS, :TEXT

    # Returns a sum, the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      sum = 0
      amount.times { |i| sum += json + zlib + openssl(i) + yaml + scanner + dates }
      sum
    end

    private

    def json = JSON.parse(JSON.generate(ROWS)).size
    def zlib = Zlib::Inflate.inflate(Zlib::Deflate.deflate(TEXT)).size

    def openssl(turn)
      cipher = OpenSSL::Cipher.new("aes-256-cbc").encrypt
      cipher.key = Digest::SHA256.digest("key #{turn}")
      cipher.iv = "0123456789abcdef"
      (cipher.update(TEXT) + cipher.final).size + OpenSSL::HMAC.digest("SHA512", "key", TEXT).size
    end

    def yaml = Psych.load(Psych.dump(ROWS.first(4))).size

    def scanner
      scan = StringScanner.new(TEXT)
      words = 0
      words += 1 while scan.skip(/\W*/) && scan.scan(/\w+/)
      words
    end

    def dates
      Array.new(100) { |i| Date.parse("2026-01-01") + i }.sum(&:yday) + DateTime.strptime("2026-11-24", "%F").day
    end
  end
end

puts Programs::Extensions.new.run(Integer(ARGV.fetch(0, "50"))) if $PROGRAM_NAME == __FILE__
