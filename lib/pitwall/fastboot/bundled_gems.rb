# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The gems that Bundler.require is going to load. Bundler asks each one for its `autorequire` when it is its turn:
    # the files to require, [] for none, nil for the gem's name.
    # @api private
    module BundledGems
      ASKER = %r{/bundler/runtime\.rb\z}
      private_constant :ASKER

      module_function

      # @return [Bundler::Definition, nil] nil: Bundler has not read the Gemfile
      def definition = (::Bundler.instance_variable_get(:@definition) if defined?(::Bundler.setup))

      # Answers for the gem when Bundler.require asks.
      # @param dependency [Bundler::Dependency]
      # @yieldparam before what the Gemfile says
      # @yieldreturn what to answer
      def answer(dependency, &block)
        dependency.define_singleton_method(:autorequire) do
          before = super()
          asker = caller_locations(1, 1)&.first&.path
          asker&.match?(ASKER) ? block.call(before) : before
        end
      end
    end
  end
end
