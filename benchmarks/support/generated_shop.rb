# frozen_string_literal: true

require "fileutils"
require_relative "shop"

module Benchmarks
  # A copy of examples/shop, with 1,000 more classes of 20 to 60 lines, 2,000 more routes and 20 locale files. Every
  # copy has the same bytes.
  class GeneratedShop
    AREAS = %w[billing catalog checkout courier customer discount export finance gift import ledger loyalty market
               payment pickup pricing promotion purchase refund return shipping stock supplier tax warehouse].freeze
    THINGS = %w[agreement contract coupon delay invoice label package receipt schedule transfer].freeze
    LOCALES = %w[bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sv].freeze
    # Folder below app/, ending of the class, superclass, first lines. NAME is a thing's name in snake case.
    KINDS = [["models", "", " < ApplicationRecord", ["belongs_to :owner, class_name: \"Category\", optional: true",
                                                     "validates :title, presence: true, length: { maximum: 80 }",
                                                     "scope :recent, -> { where(created_at: 7.days.ago..) }"]],
             ["controllers", "s_controller", " < ApplicationController", ["before_action :remember, only: :show",
                                                                          "rescue_from KeyError, with: :show"]],
             ["services", "_importer", "", ["LIMIT = 250", "attr_reader :source, :rows", "def initialize(source)",
                                            "  @source = source", "  @rows = []", "end"]],
             ["values", "_summary", "", ["include Comparable", "attr_reader :amount, :currency"]]].freeze
    METHODS = ["total_%s(lines)\n  lines.select { |line| line[:open] }.sum { |line| line[:price] * line[:count] }\nend",
               "describe_%s\n  \"%s \#{self.class.name.downcase} of \#{Time.now.year}\".squeeze(\" \").strip\nend",
               "valid_%s?(value)\n  return false if value.nil? || value.to_s.empty?\n\n" \
               "  value.to_s.match?(/\\A[a-z]{2}-\\d+\\z/)\nend",
               "find_%s(id, among: [])\n  among.find { |one| one.id == id } or raise KeyError, \"no %s \#{id}\"\nend",
               "status_of_%s(order)\n  case order\n  when Hash then order.fetch(:status, :open)\n" \
               "  when Array then order.map { |one| status_of_%1$s(one) }.uniq\n  else :unknown\n  end\nend",
               "group_%s(rows, by: :owner)\n  groups = rows.group_by { |row| row[by] }\n" \
               "  groups.transform_values(&:size).sort_by { |key, size| [-size, key.to_s] }.to_h\nend"].freeze
    WORDS = %w[item part line entry record change amount period region].freeze
    private_constant :AREAS, :THINGS, :LOCALES, :KINDS, :METHODS, :WORDS

    # @param folder [String] need not exist
    #: (String) -> void
    def initialize(folder)
      @folder = folder
      @random = Random.new(7)
      @names = AREAS.product(THINGS).map { |words| words.join("_") }
    end

    #: () -> void
    def write
      FileUtils.mkdir_p(File.join(@folder, "tmp"))
      files = Dir.children(Shop::FOLDER) - %w[.bundle .pitwall log tmp vendor]
      files.each { |name| FileUtils.cp_r(File.join(Shop::FOLDER, name), @folder) }
      @names.each { |name| KINDS.each { |kind| write_class(name, *kind) } }
      add_routes
      LOCALES.each { |locale| put("config/locales/#{locale}.yml", locale_text(locale)) }
    end

    private

    def put(path, text)
      path = File.join(@folder, path)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end

    def write_class(name, folder, ending, superclass, first)
      words = WORDS.shuffle(random: @random)
      methods = Array.new(@random.rand(4..7)) { |at| method_text(METHODS[(at + words.first.size) % 6], words[at]) }
      lines = [*first, *methods.flat_map { |text| ["", *text.lines(chomp: true)] }]
      constant = (name + ending).split("_").map(&:capitalize).join
      body = lines.map { |line| line.empty? ? "\n" : "  #{line}\n" }.join
      put("app/#{folder}/#{name}#{ending}.rb", "class #{constant}#{superclass}\n#{body}end\n")
    end

    def method_text(text, word) = "def #{text.gsub(/%(1\$)?s/, word)}"

    # Each has eight routes.
    def add_routes
      path = File.join(@folder, "config/routes.rb")
      resources = @names.map { |name| "  resources :#{name}s\n" }.join
      File.write(path, File.read(path).sub("draw do\n") { |line| line + resources })
    end

    def locale_text(locale)
      names = @names.map { |name| "      #{name}:\n        one: #{name.tr("_", " ")} (#{locale})\n" }
      "#{locale}:\n  activerecord:\n    models:\n#{names.join}"
    end
  end
end
