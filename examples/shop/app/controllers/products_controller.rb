class ProductsController < ApplicationController
  def index
    products = Product.includes(:category).sorted(params[:sort]).page(params[:page])
    render json: { count: Product.count, products: products.map { |product| summary(product) } }
  end

  def show
    @product = Product.find(params[:id])
    respond_to do |format|
      format.html { @order = Order.new }
      format.json { render json: summary(@product).merge(units_sold: @product.units_sold) }
    end
  end

  private

  def summary(product)
    product.as_json(only: [:id, :sku, :name, :description, :price_cents])
           .merge(category: product.category.name, url: product_url(product))
  end
end
